"""Gradients from before, and graphs that are still held."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.graph.saved import saved


def still_held(loss: torch.Tensor | None) -> bool:
    """Return whether the node nearest to the result that saved something still has it."""
    return loss is not None and any(entry.state == "held" for entry in saved(loss).tensors[:1])


def hold_gradients(model: nn.Module) -> None:
    """Give every second parameter a gradient from before, be it frozen since."""
    for position, parameter in enumerate(model.parameters()):
        if position % 2:
            parameter.grad = torch.full_like(parameter, 7.0)
