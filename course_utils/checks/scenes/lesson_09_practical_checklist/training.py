"""Models, batches and optimizers to train with."""

from __future__ import annotations

from typing import cast

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.numbers import numbers, seeded
from course_utils.checks.scenes.zoo import deep, in_groups, leave_gradients, steepen

Batch = tuple[torch.Tensor, ...]

Optimizer = torch.optim.Optimizer

RATE = 0.1


def double(seed: int, *shape: int) -> torch.Tensor:
    """Return float64 numbers, none near zero."""
    return numbers(seed, *shape, dtype=torch.float64)


def regression(case: Case) -> list[Batch]:
    """Return batches of uneven sizes: 4 numbers in, 3 out. With `far` the targets are so many times as large."""
    seed, far = case.given["seed"], case.given.get("far", 1.0)
    sizes = enumerate(case.given["sizes"], 1)
    return [(double(seed + n, size, 4), far * double(seed - n, size, 3)) for n, size in sizes]


def classes(case: Case) -> list[Batch]:
    """Return batches of uneven sizes: 4 numbers in, one of 3 classes out. With `steep` they suit its network."""
    seed, steep = case.given["seed"], case.given.get("steep", 1.0)
    return [
        (steep * double(seed + n, size, 4), (torch.arange(size) * (n + 1) + n) % 3)
        for n, size in enumerate(case.given["sizes"])
    ]


class Counter(nn.Module):
    """Counts its runs in training mode, as batch norm does."""

    runs: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("runs", torch.zeros((), dtype=torch.int64))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.runs.add_(1)
        return inputs


def network(case: Case, scale: float = 0.5) -> nn.Sequential:
    """Return a small network for these batches, in float64.

    With `oddities` a bias is frozen, one parameter is no part of the result, one has two names, there is a buffer, and
    a part evaluates. With `left` earlier passes have left gradients everywhere. With `steep` a gradient is long. With
    `counts` a part counts its runs.
    """
    last = nn.Linear(5, 3)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), deep(last)).double()
    if case.given.get("oddities"):
        model.register_parameter("spare", nn.Parameter(torch.ones(3, dtype=torch.float64)))
        model.register_parameter("again", cast(nn.Parameter, last.weight))
        model.register_buffer("count", torch.full((2,), 5.0, dtype=torch.float64))
        model.add_module("drop", nn.Dropout(0.5).eval())
        model[0].bias.requires_grad_(False)
    if case.given.get("counts"):
        model.add_module("counter", Counter())
    seeded(model, case.given["seed"], scale)
    steepen(model[0], case.given.get("steep", 1.0))
    if case.given.get("left"):
        leave_gradients(model, case.given["seed"])
    return model


def new_head(case: Case) -> nn.Linear:
    """Return the head to put in place."""
    head = nn.Linear(5, 3).double()
    seeded(head, case.given["seed"] + 50)
    return head


def sgd(model: nn.Module, rate: float = RATE, momentum: float = 0.0, decay: float = 0.0) -> Optimizer:
    """Return gradient descent for what a model trains, in two groups; without momentum and decay if none is given."""
    groups = in_groups(it for it in model.parameters() if it.requires_grad)
    return torch.optim.SGD(groups, lr=rate, momentum=momentum, weight_decay=decay)
