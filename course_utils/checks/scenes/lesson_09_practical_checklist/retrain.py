"""What an answer to `retrain` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_09_practical_checklist.training import new_head
from course_utils.checks.scenes.numbers import seeded
from course_utils.checks.scenes.zoo import leave_gradients, steepen


class Headed(nn.Module):
    """A body, and a head that may be replaced."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        first, again = nn.Linear(4, 5), nn.Linear(5, 5)
        again.bias = first.bias  # who goes through the layers meets it twice
        self.body = nn.Sequential(first, nn.Tanh(), again)
        self.head: nn.Module = nn.Linear(5, 2)
        seeded(self.double(), seed)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.head(self.body(inputs))
        return result


def headed(case: Case) -> tuple[Headed, nn.Module]:
    """Return the model and the head to put in place.

    With `oddities` an earlier pass has left gradients in both; in each a bias was frozen after it, a part of the body
    and the heads evaluate, and a parameter takes no part. With `steep` a gradient is long.
    """
    model, head = Headed(case.given["seed"]), new_head(case)
    if case.given.get("oddities"):
        model.body.add_module("drop", nn.Dropout(0.5).eval())
        model.body.register_parameter("spare", nn.Parameter(torch.ones(3, dtype=torch.float64)))
        leave_gradients(model, case.given["seed"])
        leave_gradients(head, case.given["seed"] + 1)
        for part in (model.body[0], model.head, head):  # frozen after the pass: an optimizer that holds it moves it
            part.get_parameter("bias").requires_grad_(False)
        for part in (model.head, head):  # in both, so that the modes that a name stands for are the same afterwards
            part.eval()
    steepen(model.body[0], case.given.get("steep", 1.0))
    return model, head
