"""What an answer to `retrain` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.scenes.numbers import seeded


class Headed(nn.Module):
    """A body, and a head that may be replaced."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 5), nn.Tanh())
        self.head = nn.Linear(5, 2)
        seeded(self.double(), seed)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.head(self.body(inputs))
        return result
