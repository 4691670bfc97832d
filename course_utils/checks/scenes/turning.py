"""A layer whose result tells in which run it was made: what an observer counts becomes a number."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from course_utils.checks.scenes.numbers import numbers

_FACTORS = 64  # after so many runs they come again


class Turning(nn.Module):
    """Multiplies by another positive factor in each run.

    Runs are counted together with those of all its copies. Who runs a model more often than is told has other
    numbers, and the judge, which lets it run as often as was told, finds that.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._factors = numbers(seed, _FACTORS).abs().tolist()
        self._runs = _Shared()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        factor = self._factors[len(self._runs) % _FACTORS]
        self._runs.append(None)
        turned: torch.Tensor = inputs * factor
        return turned


class _Shared(list[None]):
    """A list that copies of its holder share."""

    def __deepcopy__(self, memo: dict[int, Any]) -> _Shared:
        return self
