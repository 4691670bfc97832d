"""What an answer to `two_updates` is tried on."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.numbers import numbers, seeded
from course_utils.checks.scenes.zoo import deep, in_groups, lived_in


def two_headed(case: Case) -> tuple[nn.Sequential, list[nn.Sequential], list[torch.optim.Optimizer], list[Any]]:
    """Return a trunk, two heads, an optimizer for the trunk and each head, and batches of inputs and two targets."""
    seed = case.given["seed"]
    trunk = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), deep(nn.Linear(6, 5)), nn.Tanh())
    heads = [nn.Sequential(deep(nn.Linear(5, 4)), nn.Tanh(), nn.Linear(4, n)) for n in (2, 3)]
    for number, part in enumerate([trunk, *heads]):
        seeded(part, seed + number)
        lived_in(part, part[1])
    optimizers: list[torch.optim.Optimizer] = [
        torch.optim.SGD(in_groups([*trunk.parameters(), *heads[0].parameters()]), lr=0.3, momentum=0.5),
        torch.optim.Adam(in_groups([*trunk.parameters(), *heads[1].parameters()]), lr=0.05),
    ]
    batches = [
        (numbers(seed + n, size, 4), [40 * numbers(seed + n, size, 2), 40 * numbers(seed - n, size, 3)])
        for n, size in enumerate(case.given["sizes"], 1)
    ]
    for target in batches[-1][1]:  # so far that gradients are very long
        target.mul_(1000)
    return trunk, heads, optimizers, batches
