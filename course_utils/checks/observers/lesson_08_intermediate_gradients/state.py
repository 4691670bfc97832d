"""What must be as before after a look at a model."""

from __future__ import annotations

from typing import Any

from torch import nn

from course_utils.checks.data import plain
from course_utils.checks.observers.traces import changes, hook_counts, hooks_of


def state(model: nn.Module) -> dict[str, Any]:
    """Return what a model is, each fact under words that fit behind "you changed"."""
    facts: dict[str, Any] = {}
    for name, parameter in model.named_parameters():
        facts[f"{name}.grad"] = plain(parameter.grad)
        facts[f"the numbers in {name}"] = plain(parameter)
        facts[f"the shape or the dtype of {name}"] = [list(parameter.shape), str(parameter.dtype)]
        facts[f"requires_grad of {name}"] = parameter.requires_grad
        facts[f"{name} for another tensor"] = id(parameter)
        facts[f"the hooks on {name}"] = hook_counts(parameter)
    for name, buffer in model.named_buffers():
        facts[f"the numbers in {name}"] = plain(buffer)
    for name, module in model.named_modules():
        known = f"module {name}" if name else "the model"
        facts[f"the hooks on {known}"] = [list(hooks) for hooks in hooks_of(module)]
        facts[f"the training mode of {known}"] = module.training
        facts[f"the settings of {known}"] = module.extra_repr()
        facts[f"the class or the forward method of {known}"] = [type(module).__name__, "forward" in module.__dict__]
    shared = vars(nn.modules.module)
    hooks_for_all = [kind for kind in shared if kind.startswith("_global_") and kind.endswith("_hooks")]
    facts["the hooks for all modules"] = [len(shared[kind]) for kind in hooks_for_all]
    return facts


def changed(before: dict[str, Any], model: nn.Module) -> list[str]:
    """Name what is different now."""
    return changes(before, state(model))
