"""Functions of one tensor in double precision, some with a parameter of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import nn

from course_utils.checks.scenes.numbers import numbers

Map: TypeAlias = Callable[[torch.Tensor], torch.Tensor]


def doubles(seed: int, *shape: int) -> torch.Tensor:
    """Return float64 numbers that are nowhere near zero."""
    return numbers(seed, *shape, dtype=torch.float64)


class Weighted(nn.Module):
    """A function with a parameter of its own, as a layer has, with a gradient from before, and a frozen one."""

    def __init__(self, function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(1.7, dtype=torch.float64))
        self.weight.grad = torch.full_like(self.weight, 5.0)
        self.resting = nn.Parameter(torch.tensor(0.3, dtype=torch.float64), requires_grad=False)
        self._function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._function(self.weight, x)
