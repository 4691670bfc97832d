"""What an answer to `step_in_backward` is tried on."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.checks.data import Case
from course_utils.checks.scenes.batches import Batch
from course_utils.checks.scenes.lesson_07_gradient_accumulation.classifier import CLASSES, FEATURES
from course_utils.checks.scenes.numbers import seeded
from course_utils.checks.scenes.zoo import deep


class Tied(nn.Module):
    """A frozen bias, a matrix that is used twice, one number that scales, and a spare layer that takes no part."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.empty(5), requires_grad=False)
        self.mix = nn.Parameter(torch.empty(FEATURES, 5))
        self.head = deep(nn.Linear(FEATURES, CLASSES))
        self.same = self.head  # a second name for the same layer
        self.spare = nn.Linear(2, 3)
        self.scale = nn.Parameter(torch.empty(()))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.scale * self.head((inputs @ self.mix + self.bias).tanh() @ self.mix.t())
        return scores


def tied(case: Case) -> Tied:
    """Return the model with a tied matrix."""
    model = Tied().double()
    seeded(model, case.given["seed"], 0.8)
    return model


def loss_of(model: nn.Module, batch: Batch, case: Case) -> torch.Tensor:
    """Return the mean loss over a batch, so many times as the case says."""
    loss: torch.Tensor = case.given["times"] * cross_entropy(model(batch[0]), batch[1])
    return loss
