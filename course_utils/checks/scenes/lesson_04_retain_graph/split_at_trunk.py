"""What an answer to `split_at_trunk` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_04_retain_graph.trunk import Trunk
from course_utils.checks.scenes.numbers import numbers, seeded
from course_utils.checks.scenes.zoo import lived_in


class Head(nn.Module):
    """A hidden layer of its own, a vector that may be another head's, too, and a loss."""

    def __init__(self, width: int, weights: nn.Parameter, keepdim: bool = False) -> None:
        super().__init__()
        self.keepdim = keepdim
        self.hidden = nn.Sequential(nn.Linear(6, width), nn.Tanh())
        self.weights = weights

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        means: torch.Tensor = self.hidden(h).mean(1)
        return ((means * self.weights).exp() - 1).square().mean(0, keepdim=self.keepdim)


def many_headed(case: Case) -> tuple[nn.Module, list[nn.Module], torch.Tensor]:
    """Return a trunk, heads that return losses and partly share a vector, and inputs."""
    seed, widths = case.given["seed"], case.given["widths"]
    trunk: nn.Module = seeded(Trunk(), seed)
    shared, own = nn.Parameter(numbers(seed + 2, 5)), nn.Parameter(numbers(seed + 3, 5))
    heads: list[nn.Module] = [Head(width, own if n == 1 else shared, n == 1) for n, width in enumerate(widths)]
    lived_in(trunk, trunk.get_submodule("second"))
    for number, head in enumerate(heads):
        seeded(head, seed + 20 + number)
        lived_in(head, head.get_submodule("hidden.1"))
    dtype = torch.float64 if case.given["double"] else torch.float32
    for part in (trunk, *heads):
        part.to(dtype)
    inputs = numbers(seed + 1, 5, 4, dtype=dtype).requires_grad_(case.given["inputs need grad"])
    if inputs.requires_grad:
        inputs.grad = numbers(seed + 4, 5, 4, dtype=dtype)
    for number, parameter in enumerate([*trunk.parameters(), *(p for head in heads for p in head.parameters())]):
        if number % 3 == 0:  # some hold a gradient from before
            parameter.grad = numbers(seed + number, *parameter.shape, dtype=dtype)
    return trunk, heads, inputs
