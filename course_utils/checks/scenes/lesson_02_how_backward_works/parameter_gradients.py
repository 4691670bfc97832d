"""What an answer to `parameter_gradients` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.numbers import numbers, seeded
from course_utils.checks.scenes.zoo import lived_in
from course_utils.graph.saved import saved
from course_utils.graph.trace import nodes_behind


class TwoBranches(nn.Module):
    """A model with a part of each kind that may be forgotten.

    A trunk known by two names, a head whose bias is frozen, one that is not used, a layer that is frozen, one that
    evaluates, one three levels down, and a number of the model's own, behind a node that leads to nothing else.
    """

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Linear(3, 5)
        self.frozen = nn.Linear(5, 4).requires_grad_(False)
        self.head = nn.Linear(4, 2)
        self.spare = nn.Linear(4, 2)
        self.deep = nn.Sequential(nn.Sequential(nn.Linear(5, 5)))
        self.again = self.trunk
        self.drop = nn.Dropout(0.5)
        self.scale = nn.Parameter(torch.ones(1))
        self.head.bias.requires_grad_(False)
        lived_in(self, self.drop)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.head(self.drop(self.frozen(self.deep(self.trunk(x).tanh())).sin()))
        return result * self.scale.exp()


def two_branches(case: Case) -> tuple[nn.Module, torch.Tensor]:
    """Return the model and its loss on a batch.

    On one of zeros, the trunk's weight gets a gradient of zeros, and one parameter is frozen after the forward pass: a
    pass may still come to it, or leave out what leads to it alone.
    """
    seed = case.given["seed"]
    model, batch = seeded(TwoBranches(), seed), numbers(seed + 1, 6, 3)
    loss: torch.Tensor = model(torch.zeros_like(batch) if case.given["zeros"] else batch).square().mean()
    if case.given["zeros"]:
        model.get_parameter("scale").requires_grad_(False)
    return model, case.given["times"] * loss


def on_the_way(model: nn.Module, loss: torch.Tensor) -> list[bool]:
    """Say of each node behind a loss whether it leads to a parameter that requires grad: a pass has to run these."""
    nodes = nodes_behind(loss)
    asked = {id(parameter) for parameter in model.parameters() if parameter.requires_grad}
    leads = {node for node in nodes if id(getattr(node, "variable", None)) in asked}
    while more := {it for it in nodes if any(below in leads for below, _ in it.next_functions)} - leads:
        leads |= more
    return [node in leads for node in nodes]


def kept(loss: torch.Tensor, way: list[bool]) -> int:
    """Count the saved tensors that these nodes of the loss still hold."""
    return sum(entry.state in ("held", "packed") and way[entry.node] for entry in saved(loss))
