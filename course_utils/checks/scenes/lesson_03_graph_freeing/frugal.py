"""What an answer to `frugal` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_03_graph_freeing.leaves import numbers


class Block(nn.Module):
    """A residual step with a little noise. Where gradients are recorded, it keeps its input and what dropout needs."""

    def __init__(self, scale: float, noise: float) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))
        self.noise = noise

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.sin(self.scale * x)
        return x + 0.1 * (nn.functional.dropout(y, self.noise, self.training) if self.noise else y)


def stack(case: Case) -> tuple[nn.Sequential, torch.Tensor]:
    """Return the case's blocks and their input, in float64."""
    seed, count = case.given["seed"], case.given["blocks"]
    scales = numbers(seed, count).tolist()
    noisy = case.given["noisy"]
    blocks = nn.Sequential(*(Block(scale, 0.3 if n in noisy else 0.0) for n, scale in enumerate(scales)))
    return blocks.double(), numbers(seed + 1, case.given["size"]).double().requires_grad_()
