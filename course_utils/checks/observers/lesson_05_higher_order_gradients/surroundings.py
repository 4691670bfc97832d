"""What an answer must leave as it was, besides the numbers and gradients that observers compare themselves."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from course_utils.checks.data import plain
from course_utils.checks.observers.traces import changes, which_hooks


def facts_about(model: nn.Module | None = None, **tensors: torch.Tensor) -> dict[str, Any]:
    """Return facts about the gradient mode, tensors and a model, each under words that fit into a sentence."""
    facts: dict[str, Any] = {"the gradient mode": torch.is_grad_enabled()}
    for name, tensor in tensors.items():
        facts[f"the hooks on {name}"] = which_hooks(tensor)
    if model is not None:
        for name, parameter in model.named_parameters():
            facts[f"the hooks on {name}"] = which_hooks(parameter)
        for name, buffer in model.named_buffers():
            facts[f"the numbers in {name}"] = plain(buffer)
        for name, module in model.named_modules():
            known = f"the module {name}" if name else "the model"
            facts[f"the training mode of {known}"] = module.training
            facts[f"the hooks on {known}"] = which_hooks(module)
    return facts


def changed(before: dict[str, Any], model: nn.Module | None = None, **tensors: torch.Tensor) -> list[str]:
    """Name what is not as it was, at most three things."""
    return changes(before, facts_about(model, **tensors))[:3]
