"""What an answer to `rescue` is tried on."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.numbers import numbers


def stacked(case: Case) -> tuple[nn.Sequential, torch.Tensor]:
    """Return linear layers with activations between them as PyTorch starts them, and a batch.

    One layer is frozen and holds a gradient of an earlier pass.
    """
    seed, kind = case.given["seed"], {"relu": nn.ReLU, "tanh": nn.Tanh}[case.given["activation"]]
    torch.default_generator.manual_seed(seed)
    widths = case.given["widths"]
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), kind()]
    frozen = layers[6].requires_grad_(False)
    frozen.get_parameter("weight").grad = numbers(seed + 3, *frozen.get_parameter("weight").shape)
    dtype = torch.float64 if kind is nn.Tanh else torch.float32
    model = nn.Sequential(*layers, nn.Linear(widths[-1], 2)).to(dtype)
    return model, numbers(seed + 1, 20, widths[0], dtype=dtype)
