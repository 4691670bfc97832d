"""The zoo holds what it says."""

import pytest
import torch

from course_utils.checks.scenes.zoo import (
    CLASSES,
    FEATURES,
    KINDS,
    Once,
    deep,
    everything,
    kind_of,
    leave_gradients,
    one_layer,
)

ROWS = torch.linspace(-1, 1, 4 * FEATURES, dtype=torch.float64).reshape(4, FEATURES)


def test_a_model_with_a_part_of_each_kind():
    model = everything(3)
    assert {part.training for part in model.modules()} == {True, False}
    assert {it.requires_grad for it in model.parameters()} == {True, False}
    assert set(dict(model.named_buffers())) - set(model.state_dict()) == {"trains.mask", "evaluates.mask"}
    assert len(model._forward_hooks) == 1
    shared = [name for name, it in model.named_parameters(remove_duplicate=False) if it is model.twice.weight]
    assert shared == ["twice.weight", "again.weight"]
    before = model.trains.norm.running_mean.clone()
    model(ROWS).sum().backward()
    assert not torch.equal(model.trains.norm.running_mean, before)
    assert model.spare.weight.grad is None


def test_it_draws_only_where_asked():
    def two(draws):
        torch.manual_seed(0)
        model = everything(3, draws)
        return torch.equal(model(ROWS), model(ROWS))

    assert two(False)
    assert not two(True)


def test_numbers_come_from_the_seed_alone():
    assert torch.equal(everything(3)(ROWS), everything(3)(ROWS))
    assert not torch.equal(one_layer(1).weight, one_layer(2).weight)
    assert one_layer(1)(ROWS).shape == (4, CLASSES)


def test_a_deep_layer_is_none_of_a_models_own_parts():
    layer = one_layer(1)
    model = torch.nn.Sequential(deep(layer))
    assert torch.equal(model(ROWS), layer(ROWS))
    assert [name for name, _ in model.named_parameters()] == ["0.0.0.weight", "0.0.0.bias"]


def test_gradients_are_left_where_there_can_be_some():
    model = everything(3)
    leave_gradients(model, 1)
    assert all((it.grad is not None) is it.requires_grad for it in model.parameters())


def test_batches_come_once():
    once = Once([1, 2])
    assert not hasattr(once, "__len__")
    assert list(once) == [1, 2]
    assert list(once) == []


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_tensors_of_every_kind(seed):
    made = {kind: kind_of(kind, seed) for kind in KINDS}
    assert made["number"].dim() == 0
    assert made["one entry"].numel() == 1
    assert not made["transposed"].is_contiguous()
    assert not made["every second"].is_contiguous()
    assert bool((made["negative"] < 0).all())
    assert 0 < int((made["with zeros"] == 0).sum()) < 12
    assert len(made["ties"].unique()) <= 2
    assert made["half"].dtype == torch.float16
    assert made["fine"].dtype == torch.float64
    assert len(made["fine"].float().unique()) == 1 < len(made["fine"].unique())
    assert bool((made["huge"] ** 2).isinf().all())
    assert not any(tensor.requires_grad for tensor in made.values())
