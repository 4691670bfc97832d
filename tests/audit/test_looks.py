"""Looks aside change nothing, and the close watch begins again for a training that comes later."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import _get_current_function_mode_stack
from torch.utils.checkpoint import checkpoint

from course_utils.audit.checks import leaks, shifts
from course_utils.audit.watch import audit
from tests.audit.parts import blobs, mlp


class Language(nn.Module):
    """A language model that sees what comes next, with dropout, so that each forward draws numbers."""

    def __init__(self, kept=True):
        super().__init__()
        self.embed, self.drop, self.kept = nn.Embedding(9, 6), nn.Dropout(0.2), kept
        self.mix, self.head = nn.MultiheadAttention(6, 2, dropout=0.1, batch_first=True), nn.Linear(6, 9)

    def block(self, x):
        return x + self.mix(x, x, x, need_weights=False)[0]

    def forward(self, tokens):
        x = self.drop(self.embed(tokens))
        x = self.block(x) if self.kept else checkpoint(self.block, x, use_reentrant=False)
        return self.head(x)


def train(model, moved=1):
    torch.manual_seed(3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    seen = []
    for _ in range(5):
        text = torch.randint(9, (4, 8))
        loss = F.cross_entropy(model(text[:, : 8 - moved]).flatten(0, 1), text[:, moved:].flatten())
        optimizer.zero_grad()
        loss.backward()
        seen += [loss.detach(), *(p.grad.clone() for p in model.parameters())]
        optimizer.step()
    return [*seen, *(p.detach().clone() for p in model.parameters()), torch.get_rng_state()]


def test_looking_for_a_leak_changes_no_bit(monkeypatch):
    torch.manual_seed(0)
    model = Language()
    alone = train(copy.deepcopy(model))
    looks = []
    original = leaks._depends
    monkeypatch.setattr(leaks, "_depends", lambda *args: looks.append(1) or original(*args))
    with audit() as report:
        watched = train(copy.deepcopy(model))
    assert len(looks) == 3
    assert "sees-target" in report.codes
    assert all(torch.equal(a, b) for a, b in zip(alone, watched, strict=True))


class Back(Language):
    def block(self, x):
        mask = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1)
        return x + self.mix(x, x, x, attn_mask=mask, need_weights=False)[0]


def test_looking_whether_a_model_looks_back_changes_no_bit(monkeypatch):
    torch.manual_seed(0)
    model = Back()
    alone = train(copy.deepcopy(model), 0)
    looks = []
    original = shifts._looks_back
    monkeypatch.setattr(shifts, "_looks_back", lambda *args: looks.append(1) or original(*args))
    with audit() as report:
        watched = train(copy.deepcopy(model), 0)
    assert len(looks) == 3
    assert "not-shifted" in report.codes
    assert all(torch.equal(a, b) for a, b in zip(alone, watched, strict=True))


@pytest.mark.parametrize("way", ["checkpoint", "hook", "function"])
def test_nothing_is_run_that_may_do_more_than_compute(way, monkeypatch):
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    class Around(Language):
        def block(self, x):
            x = super().block(x)
            if way == "hook" and x.requires_grad:
                x.register_hook(lambda grad: None)
            return Doubled.apply(x) if way == "function" else x

    looks = []
    monkeypatch.setattr(leaks, "_depends", lambda *args: looks.append(1) or True)
    with audit():
        train(Around(kept=way != "checkpoint"))
    assert not looks


def test_the_close_watch_begins_again_for_a_later_optimizer():
    x, y = blobs()
    modes = []

    def learn(steps):
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(steps):
            modes.append((step, len(_get_current_function_mode_stack())))
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()

    with audit(steps=2):
        for _ in range(6):
            learn(4)
    again = [height for step, height in modes if step < 2]
    assert again == [1] * 8 + [0] * 4, "once, and three times again"
    assert all(height == 0 for step, height in modes if step >= 2)
    assert not _get_current_function_mode_stack()


def test_it_does_not_begin_again_above_another_mode():
    x, y = blobs()
    model = mlp()
    with audit(steps=1):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        with torch.device("cpu"):
            torch.optim.SGD(model.parameters(), lr=0.1)
            assert len(_get_current_function_mode_stack()) == 1
        assert not _get_current_function_mode_stack()
    with audit(steps=0):
        torch.optim.SGD(model.parameters(), lr=0.1)
        assert not _get_current_function_mode_stack()
