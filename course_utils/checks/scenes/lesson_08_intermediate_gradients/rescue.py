"""What an answer to `rescue` is tried on."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.numbers import numbers


def stacked(case: Case) -> tuple[nn.Sequential, torch.Tensor]:
    """Return linear layers with activations between them as PyTorch starts them, and a batch.

    Most layers are frozen, as they may be: left as they start, these alone let the gradient vanish. One of them holds
    a gradient of an earlier pass.
    """
    seed, kind = case.given["seed"], {"relu": nn.ReLU, "tanh": nn.Tanh}[case.given["activation"]]
    torch.default_generator.manual_seed(seed)
    widths = case.given["widths"]
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), kind()]
    for layer in layers[2:-2]:
        layer.requires_grad_(False)
    frozen = layers[6].get_parameter("weight")
    frozen.grad = numbers(seed + 3, *frozen.shape)
    dtype = torch.float64 if kind is nn.Tanh else torch.float32
    model = nn.Sequential(*layers, nn.Linear(widths[-1], 2)).to(dtype)
    return model, numbers(seed + 1, 20, widths[0], dtype=dtype)
