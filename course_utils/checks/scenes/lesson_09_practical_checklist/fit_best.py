"""What an answer to `fit_best` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_09_practical_checklist.training import Counter
from course_utils.checks.scenes.numbers import seeded
from course_utils.checks.scenes.zoo import deep, leave_gradients


class Warm(Counter):
    """Behaves differently in training, as dropout and batch norm do, but without chance."""

    by: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("by", torch.tensor(1.4, dtype=torch.float64), persistent=False)  # not part of the state

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        inputs = super().forward(inputs)
        return inputs * self.by if self.training else inputs


def warm_network(case: Case) -> nn.Sequential:
    """Return a network with a layer that has two modes.

    With `left` an earlier pass has left its gradients, a weight has two names, one takes no part, and the model
    evaluates.
    """
    model = nn.Sequential(nn.Linear(4, 5), deep(Warm()), nn.Tanh(), deep(nn.Linear(5, 3))).double()
    if case.given["left"]:
        model.register_parameter("spare", nn.Parameter(torch.empty(2, dtype=torch.float64)))
    seeded(model, case.given["seed"])
    if case.given["left"]:
        model[3].register_parameter("again", model.get_parameter("0.weight"))
        model.eval()
        leave_gradients(model, case.given["seed"])
    return model
