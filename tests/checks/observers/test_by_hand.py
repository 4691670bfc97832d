"""Noticing what is computed with a module's weights, and not by the module."""

import copy
import weakref
from collections import Counter
from contextlib import ExitStack
from functools import partial

import pytest
import torch
from torch import nn

from course_utils.checks.observers import telling
from course_utils.checks.observers.by_hand import HAND, READ, noticed
from course_utils.checks.observers.runs import notice


def told_by(run) -> None:
    def observe() -> None:
        model = nn.Sequential(nn.Conv2d(1, 2, 2), nn.Flatten(), nn.Linear(8, 2))
        notice(model, lambda *given: None)
        run(model, torch.ones(1, 1, 3, 3))

    noticed(observe)


def copied_by_a_list(model, x):
    copies = [torch.empty_like(model[2].weight)]
    torch._foreach_copy_(copies, [model[2].weight.detach()])
    return torch.ones(1, 8) @ copies[0].t()


def added_by_an_optimizer(model, x):
    copy = nn.Parameter(torch.zeros_like(model[2].weight))
    copy.grad = -model[2].weight.detach()
    torch.optim.SGD([copy], lr=1.0, foreach=True).step()
    return torch.ones(1, 8) @ copy.detach().t()


def reduced(model, x):
    rows = model[2].weight.detach().clone()
    return rows.index_reduce(0, torch.tensor([0, 1]), torch.ones(2, 8), "prod").sum(1)


def rows_of_one_shape(model, x):
    given = torch.ones(5, 1, 3, 3)
    model(given)
    rows = [row.flatten()[:8].expand(2, 8).clone() for row in given]
    return [(row * model[2].weight.detach()).sum(1) for row in rows]


def weights_given_back_by_a_pass(model, x):
    ones = torch.ones_like(model[2].weight).requires_grad_()
    (weight,) = torch.autograd.grad((ones * model[2].weight.detach()).sum(), ones)
    return nn.functional.linear(torch.ones(1, 8), weight)


def a_context_as_a_hook(model, x):
    stack = ExitStack()
    weights = {name: it.detach() for name, it in model[2].named_parameters()}
    stack.callback(torch.func.functional_call, nn.Linear(8, 2), weights, (torch.ones(1, 8),))
    model[1].register_forward_hook(stack.__exit__)
    model[1].register_forward_hook(lambda module, given, result: given[0].flatten(1))
    return model(x)


def functions_of_c_as_a_hook(model, x):
    found = []
    run = map(partial(nn.functional.linear, torch.ones(1, 8)), [model[2].weight.detach()])
    y = model(x)
    y.register_hook(partial(next, map(found.append, run)))
    y.sum().backward()
    assert found


def spread_out_by_views(model, x):
    return (torch.ones(5, 1, 8).expand(5, 2, 8) * model[2].weight.detach().expand(5, 2, 8)).sum(2)


@pytest.mark.parametrize(
    "run",
    [
        copied_by_a_list,
        added_by_an_optimizer,
        reduced,
        spread_out_by_views,
        rows_of_one_shape,
        weights_given_back_by_a_pass,
        a_context_as_a_hook,
        functions_of_c_as_a_hook,
        lambda model, x: torch._foreach_mul([torch.ones(5, 1, 8)], [model[2].weight.detach()]),
        lambda model, x: torch.ones(1, 8, dtype=torch.complex64) @ model[2].weight.t().to(torch.complex64),
        lambda model, x: nn.functional.conv2d(x, model[0].weight),
        lambda model, x: nn.functional.linear(torch.ones(1, 8), model[2].weight.detach()),
        lambda model, x: torch.ones(1, 8) @ model[2].weight.t(),
        lambda model, x: nn.functional.embedding_bag(
            torch.arange(8)[None], model[2].weight.t().contiguous(), per_sample_weights=torch.ones(1, 8), mode="sum"
        ),
        lambda model, x: torch.ones(1, 8) @ (model[2].weight.double().clone() + 0).float().t(),
        lambda model, x: (torch.ones(5, 1, 8) * (model[2].weight * 1)).sum(2),
        lambda model, x: nn.functional.linear(torch.ones(8), copy.deepcopy(model[2].weight)),
        lambda model, x: torch.func.functional_call(nn.Linear(8, 2), dict(model[2].named_parameters()), torch.ones(8)),
    ],
)
def test_layers_by_hand_are_told(run, told) -> None:
    told_by(run)
    assert told[HAND] > 0


def updated_by_hand(model, x):
    model(x).sum().backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    with torch.no_grad():
        for p, g in zip(model.parameters(), gradients, strict=True):
            p -= 0.1 * g * p.abs()
    return [torch._foreach_mul(list(model.parameters()), gradients)]


def test_weights_in_a_layout_without_memory_are_told(told) -> None:
    told_by(lambda model, x: model[2].weight.detach().to_sparse())
    assert told[READ] > 0


@pytest.mark.parametrize(
    "run",
    [
        lambda model, x: model(x).sum().backward(),
        lambda model, x: model.forward(x),
        lambda model, x: torch.func.functional_call(model, dict(model.named_parameters()), (x,)),
        lambda model, x: torch.func.vmap(model)(x[None]),
        lambda model, x: torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False).sum().backward(),
        lambda model, x: copy.deepcopy(model)(x),
        lambda model, x: sum((p**2).sum() for p in model.parameters()).backward(),
        lambda model, x: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0),
        lambda model, x: nn.functional.conv2d(x, torch.ones(1, 1, 2, 2)),
        lambda model, x: torch.optim.Adam(model.parameters(), weight_decay=0.1).step(),
        lambda model, x: [
            p.data.sub_(torch.ones_like(p) * 0.1).clamp_(-1, 1).lerp_(p.data, 0.5) for p in model.parameters()
        ],
        lambda model, x: [torch.cat([p.flatten(), x.flatten()]).norm().item() for p in model.parameters()],
        lambda model, x: model[0].bias[0].item(),
        updated_by_hand,
    ],
)
def test_runs_passes_and_sums_of_weights_are_not(run, told) -> None:
    told_by(run)
    assert not told[HAND]
    assert not told[READ]


def _read_all(model, x) -> None:
    [number.item() for number in model[2].weight.flatten()]


def _read_a_copy(model, x) -> None:
    [float(number) for number in model[2].weight.detach().clone().flatten()]


@pytest.mark.parametrize("run", [_read_all, _read_a_copy])
def test_weights_that_are_read_number_by_number_are_told(run, told) -> None:
    told_by(run)
    assert told[READ] == 1


def test_who_calls_itself_pytorch_is_told_too(told) -> None:
    place = {"__name__": "torch.nn.functional", "torch": torch}
    exec("def run(model, x): torch.conv2d(x, model[0].weight)", place)
    told_by(place["run"])
    assert told[HAND] > 0


def test_in_the_first_way_nothing_is_noticed() -> None:
    found: Counter[str] = Counter()
    telling.listen(lambda what: found.update([what]))
    told_by(lambda model, x: nn.functional.conv2d(x, model[0].weight))
    telling.listen(None)
    assert not found


def test_what_weights_meet_is_told_when_it_goes_into_a_run_afterwards(told) -> None:
    def run(model, x):
        notice(model[0], lambda *seen: None)
        given = torch.ones(2, 1, 2, 2)
        assert (given * model[0].weight.detach()).any()
        assert not told[HAND]
        model[0](given)

    told_by(run)
    assert told[HAND] == 1


def test_versions_are_raised_as_without_a_mode(told) -> None:
    one = [torch.ones(1)]
    told_by(lambda model, x: torch._foreach_add_(one, 1.0))
    assert one[0]._version == 1


def test_a_class_has_its_own_forward_again_when_the_case_ends(told) -> None:
    before = nn.Sequential.forward
    told_by(lambda model, x: model(x))
    assert nn.Sequential.forward is before


def test_what_a_hook_of_c_holds_is_let_go_with_it(told) -> None:
    held = []

    def run(model, x):
        y = model(x)
        kept = torch.ones(1)
        y.register_hook(partial(lambda kept, gradient: None, kept))
        held.append(weakref.ref(kept))

    told_by(run)
    assert held[0]() is None
