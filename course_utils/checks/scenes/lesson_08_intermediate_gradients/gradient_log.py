"""What an answer to `gradient_log` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.batches import Batch
from course_utils.checks.scenes.numbers import numbers, seeded


class Own(nn.Linear):
    """A linear layer of a class of its own."""


class Scorer(nn.Module):
    """Three linear layers and a norm, which shares its bias with one of them.

    One is inside another module, and they run in another order than they stand.
    """

    def __init__(self) -> None:
        super().__init__()
        self.leave = nn.Linear(5, 2)
        self.enter, self.norm = Own(3, 6), nn.LayerNorm(6)
        self.norm.bias = self.enter.bias
        self.middle = nn.Sequential(nn.Tanh(), nn.Linear(6, 5), nn.Sigmoid())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.leave(self.middle(self.norm(self.enter(x))))
        return result


def logged(case: Case) -> tuple[nn.Module, list[Batch]]:
    """Return a model and batches of uneven sizes, one of them with an axis more. The model may be a single layer."""
    seed = case.given["seed"]
    far = {2: 1e60}  # one batch has gradients so long that their norm overflows in float32
    axes = {3: (2,)}
    batches = []
    for n, size in case.given["sizes"]:
        shape = (size, *axes.get(n, ()))
        targets = far.get(n, 1) * numbers(seed - n, *shape, 2).double()
        batches.append((numbers(seed + n, *shape, 3).double(), targets))
    model = nn.Linear(3, 2) if case.given["alone"] else Scorer()
    return seeded(model, seed).double(), batches
