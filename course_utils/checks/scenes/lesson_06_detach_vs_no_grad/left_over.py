"""Gradients and statistics that earlier steps left."""

from __future__ import annotations

from typing import Any

from torch import nn

from course_utils.checks.scenes.numbers import numbers


def stale(model: nn.Module, seed: int) -> None:
    """Leave a gradient in each parameter, as an earlier step would."""
    for offset, parameter in enumerate(model.parameters()):
        parameter.grad = numbers(seed + offset, *parameter.shape)


def remember(norm: Any, seed: int, batches: int) -> None:
    """Give batch norm statistics as if it had seen some batches."""
    norm.running_mean.copy_(numbers(seed, norm.num_features))
    norm.running_var.copy_(numbers(seed + 1, norm.num_features).abs())
    norm.num_batches_tracked.fill_(batches)
