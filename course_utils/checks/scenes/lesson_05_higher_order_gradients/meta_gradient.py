"""What an answer to `meta_gradient` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.numbers import seeded
from course_utils.checks.scenes.zoo import deep, lived_in


class Small(nn.Module):
    """Two layers, the first of which may be frozen, dropout that evaluates, and a buffer that shifts the input."""

    shift: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first = deep(nn.Linear(2, 3))
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(3, 2)
        self.register_buffer("shift", torch.tensor([0.3, -0.7]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.last(self.drop(torch.tanh(self.first(x + self.shift))))
        return result


def adaptable(case: Case) -> nn.Module:
    """Return the case's model."""
    model = seeded(Small().double(), case.given["seed"], scale=0.8)
    lived_in(model, model.get_submodule("drop"))
    for name in case.given["frozen"]:
        model.get_parameter(name).requires_grad_(False)
    return model
