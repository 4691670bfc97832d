"""What an answer to `gradient_log` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.batches import Batch
from course_utils.checks.scenes.numbers import numbers, seeded


class Scorer(nn.Module):
    """Three linear layers, one of them inside another module, and a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.norm = nn.Linear(3, 6), nn.LayerNorm(6)
        self.middle = nn.Sequential(nn.Tanh(), nn.Linear(6, 5), nn.Sigmoid())
        self.leave = nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.leave(self.middle(self.norm(self.enter(x))))
        return result


def logged(case: Case) -> tuple[nn.Module, list[Batch]]:
    """Return a model and batches of uneven sizes."""
    seed = case.given["seed"]
    far = {2: 1e5}  # one batch has long gradients
    batches = [
        (numbers(seed + n, size, 3).double(), far.get(n, 1) * numbers(seed - n, size, 2).double())
        for n, size in case.given["sizes"]
    ]
    return seeded(Scorer(), seed).double(), batches
