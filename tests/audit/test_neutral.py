"""A watch changes nothing: not a value, not a gradient, not a random number, not a hook."""

import copy
import gc
import random
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules import module as modules
from torch.optim import optimizer as optimizers
from torch.overrides import _get_current_function_mode_stack

from course_utils.audit.watch import audit
from tests.audit.parts import Dropping, batches, blobs


def train(model, optimizer_kind, steps=30, scaled=False):
    """Train for some steps. Return all that the training made: losses, gradients, random numbers."""
    torch.manual_seed(1)
    x, y = blobs(32)
    optimizer = optimizer_kind(model.parameters())
    scaler = torch.amp.GradScaler("cpu", enabled=scaled)
    seen = []
    for step in range(steps):
        inputs, targets = batches(x, y)[step % 8]
        model.train()
        optimizer.zero_grad()
        with torch.autocast("cpu", enabled=scaled):
            loss = F.cross_entropy(model(inputs), targets)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer) if scaled else None
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        seen += [p.grad.clone() for p in model.parameters()]
        scaler.step(optimizer)
        scaler.update()
        model.eval()
        with torch.no_grad():
            seen.append(model(x))
        seen.append(loss.detach())
    return [*seen, *(p.detach() for p in model.parameters()), *model.buffers(), torch.get_rng_state()]


class Encoding(nn.Module):
    """A transformer, whose evaluation takes a faster way where nothing watches functions."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.2, batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.encoder(x[:, None])[:, 0])


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam])
@pytest.mark.parametrize("make", [Dropping, Encoding])
def test_a_watched_training_is_the_same_to_the_last_bit(make, kind, scaled):
    torch.manual_seed(0)
    model = make()
    alone = train(copy.deepcopy(model), kind, scaled=scaled)
    with audit() as report:
        watched = train(copy.deepcopy(model), kind, scaled=scaled)
    assert report.watched.steps >= 30
    assert len(alone) == len(watched)
    assert all(torch.equal(a, b) for a, b in zip(alone, watched, strict=True))


def entry_points():
    clip = torch.nn.utils.clip_grad
    return (
        torch.autograd._engine_run_backward,
        nn.Module.__call__,
        nn.Module.zero_grad,
        nn.Module.train,
        nn.Module.load_state_dict,
        nn.Module.state_dict,
        torch.optim.Optimizer.__init__,
        torch.optim.Optimizer.zero_grad,
        torch.optim.lr_scheduler.LRScheduler.step,
        torch.optim.lr_scheduler.LRScheduler.__init__,
        torch.manual_seed,
        random.seed,
        torch.amp.GradScaler.scale,
        torch.utils.hooks.RemovableHandle.__init__,
        clip._get_total_norm,
        clip._clip_grads_with_norm_,
        clip._group_tensors_by_device_and_dtype,
        tuple(optimizers._global_optimizer_pre_hooks),
        tuple(optimizers._global_optimizer_post_hooks),
        tuple(modules._global_forward_hooks),
        tuple(_get_current_function_mode_stack()),
    )


def test_nothing_is_left_behind():
    before = entry_points()
    model = Dropping()
    with audit(model):
        assert entry_points() != before
        train(model, torch.optim.SGD)
    assert entry_points() == before
    with pytest.raises(ZeroDivisionError), audit(model):
        raise ZeroDivisionError
    assert entry_points() == before
    for part in model.modules():
        assert not part._forward_hooks
        assert not part._forward_pre_hooks
        assert "__call__" not in vars(type(part))
    assert not any(p._backward_hooks or p._post_accumulate_grad_hooks for p in model.parameters())


def test_the_full_tier_ends_after_its_steps():
    model = Dropping()
    x, y = blobs()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    modes = []
    with audit(steps=3):
        for _ in range(6):
            modes.append(len(_get_current_function_mode_stack()))
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    assert modes == [1, 1, 1, 0, 0, 0]


def test_the_full_tier_leaves_another_mode_alone():
    x, y = blobs()
    model = Dropping()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with audit(steps=2):
        with torch.device("cpu"):
            for _ in range(4):
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
            assert torch.ones(1).device.type == "cpu"
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        assert not _get_current_function_mode_stack()


def test_no_graph_is_kept_alive():
    class Token:
        pass

    model = Dropping()
    x, y = blobs()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with audit(model, optimizer):
        tokens = []
        for _ in range(6):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            token = Token()
            loss.grad_fn.metadata["token"] = token
            tokens.append(weakref.ref(token))
            del token
            loss.backward()
            optimizer.step()
        del loss
        gc.collect()
        assert not [token for token in tokens if token() is not None]


class Slow(torch.optim.Optimizer):
    """An optimizer whose steps are another's."""

    def __init__(self, inner):
        self.inner = inner
        super().__init__(inner.param_groups, {})

    def step(self, closure=None):
        return self.inner.step(closure)


@pytest.mark.parametrize("wrap", [lambda inner: inner, Slow])
def test_functions_are_watched_again_after_a_step(wrap):
    x, y = blobs()
    model = nn.Linear(4, 3)
    optimizer = wrap(torch.optim.LBFGS(model.parameters(), max_iter=2))
    inside = []

    def closure():
        inside.append(len(_get_current_function_mode_stack()))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    before = len(_get_current_function_mode_stack())
    with audit():
        for _ in range(3):
            optimizer.step(closure)
            assert len(_get_current_function_mode_stack()) == before + 1
    assert set(inside) == {before + 1}
    assert len(_get_current_function_mode_stack()) == before
