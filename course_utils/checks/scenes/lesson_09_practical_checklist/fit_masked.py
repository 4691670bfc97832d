"""What an answer to `fit_masked` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_09_practical_checklist.training import Batch, regression
from course_utils.checks.scenes.numbers import seeded
from course_utils.checks.scenes.zoo import leave_gradients


class Masked(nn.Module):
    """Two layers. What happens between them is the loop's business."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.first = nn.Linear(4, 5)
        self.last = nn.Linear(5, 3)
        seeded(self.double(), seed)
        with torch.no_grad():  # weights on both sides of any limit
            self.last.weight[0, :2] = torch.tensor([0.75, -0.75])


def started(case: Case) -> Masked:
    """Return the model. With `left` an earlier pass has left its gradients, with `frozen` the last weight is frozen."""
    model = Masked(case.given["seed"])
    model.last.weight.requires_grad_(not case.given.get("frozen"))
    model.first.eval()  # a linear layer has one way, but its mode is to stay
    if case.given.get("left"):
        leave_gradients(model, case.given["seed"])
    return model


def masked(case: Case) -> list[Batch]:
    """Return batches with a mask for the 5 hidden numbers in the middle."""
    masks = torch.tensor([[1.0, 0.0, 2.0, 0.5, 1.5], [0.0, 1.5, 0.5, 2.0, 0.0]], dtype=torch.float64)
    return [
        (inputs, masks[torch.arange(len(inputs)) % 2] * (1 + n / 10), targets)
        for n, (inputs, targets) in enumerate(regression(case))
    ]
