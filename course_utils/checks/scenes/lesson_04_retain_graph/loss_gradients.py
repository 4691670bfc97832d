"""What an answer to `loss_gradients` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_04_retain_graph.trunk import Trunk
from course_utils.checks.scenes.numbers import numbers, seeded


def held_before(number: int, parameter: torch.Tensor) -> torch.Tensor | None:
    """Return what .grad of the parameter of this number holds when an answer is called."""
    return numbers(number, *parameter.shape) if number % 2 else None


def trunk_and_losses(case: Case) -> tuple[nn.Module, torch.Tensor, list[torch.Tensor], list[nn.Parameter]]:
    """Return a trunk, its result, some losses on it, and the parameters of their heads.

    Where they are `alike`, two heads hold the same numbers, and so do their losses.
    """
    seed, count = case.given["seed"], case.given["losses"]
    trunk = seeded(Trunk(), seed)
    h = trunk(numbers(seed + 1, 5, 4))
    widths = [3, 3] if case.given["alike"] else [3, 2, 5][:count]
    heads = [seeded(nn.Linear(6, width), seed + 10 + width) for width in widths]
    losses = [times * head(h).sin().square().mean() for times, head in zip(case.given["times"], heads, strict=True)]
    return trunk, h, losses, [parameter for head in heads for parameter in head.parameters()]
