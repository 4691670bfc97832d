"""Functions of one tensor in double precision, some with a parameter of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch

from course_utils.checks.scenes.numbers import numbers

Map: TypeAlias = Callable[[torch.Tensor], torch.Tensor]


def doubles(seed: int, *shape: int) -> torch.Tensor:
    """Return float64 numbers that are nowhere near zero."""
    return numbers(seed, *shape, dtype=torch.float64)


class Weighted:
    """A function with a parameter of its own, as a layer has."""

    def __init__(self, function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        self.weight = torch.tensor(1.7, dtype=torch.float64, requires_grad=True)
        self._function = function

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self._function(self.weight, x)
