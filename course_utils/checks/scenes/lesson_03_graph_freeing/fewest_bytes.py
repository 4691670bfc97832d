"""What an answer to `fewest_bytes` is tried on: a network, and more images than one run should take."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.numbers import numbers, seeded
from course_utils.checks.scenes.zoo import lived_in

LAYERS = 10


def validation(case: Case) -> tuple[nn.Sequential, torch.Tensor, torch.Tensor]:
    """Return a network, images and labels, as the case says."""
    seed, count, wide, pixels = (case.given[name] for name in ("seed", "images", "wide", "pixels"))
    widths = [pixels, wide, *[wide // 4] * (LAYERS - 2), 10]
    layers: list[nn.Module] = []
    for entering, leaving in pairwise(widths):
        layers += [nn.Linear(entering, leaving, dtype=torch.float64), nn.Tanh()]
    model = nn.Sequential(*layers[:-1])
    labels = torch.arange(count).mul(7).div(3, rounding_mode="floor") % 10
    seeded(model, seed, 0.4)
    lived_in(model, model[1])
    model[0].bias.requires_grad_(False)
    return model, numbers(seed, count, pixels, dtype=torch.float64), labels
