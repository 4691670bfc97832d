"""What the observers of lesson 06 look at: runs of a model, what was saved, and what must be as before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Array, plain
from course_utils.checks.observers.runs import notice
from course_utils.checks.observers.traces import hooks_on, parts_of


def flags(model: nn.Module) -> dict[str, bool]:
    """Return each parameter's requires_grad."""
    return {name: parameter.requires_grad for name, parameter in model.named_parameters()}


class Runs:
    """The runs of a model: how many, and in which of them the result of any of its layers required a gradient."""

    def __init__(self, model: nn.Sequential, name: str = "runs") -> None:
        self.live: list[bool] = []
        self._inside = False
        notice(model[-1], lambda module, given, result: self._ran(result), name=name)
        for layer in list(model)[:-1]:  # recording may be switched within a run
            notice(layer, lambda module, given, result: self._passed(result))

    def _passed(self, result: torch.Tensor) -> None:
        self._inside |= result.requires_grad

    def _ran(self, result: torch.Tensor) -> None:
        self.live.append(result.requires_grad or self._inside)
        self._inside = False


def numbers_in(model: nn.Module) -> list[Array]:
    return [Array.of(parameter) for parameter in model.parameters()]


def gradients_in(model: nn.Module) -> list[Any]:
    return [plain(parameter.grad) for parameter in model.parameters()]


def parameters_as_found(**models: nn.Module) -> dict[str, Any]:
    """Return facts about the parameters of models, each under words that fit into a sentence."""
    facts: dict[str, Any] = {}
    for name, model in models.items():
        facts |= {f"the numbers in {name}": numbers_in(model), f"requires_grad in {name}": flags(model)}
    return facts


def modes_as_found(**models: nn.Module) -> dict[str, Any]:
    """Return facts about modes, each under words that fit into a sentence."""
    modes = {f"the mode of a part of {name}": [it.training for it in model.modules()] for name, model in models.items()}
    return {**modes, "whether gradients are recorded": torch.is_grad_enabled()}


def modes_of(*models: nn.Module) -> list[bool]:
    """Return whether recording is on, and the mode of each part of the models."""
    return [torch.is_grad_enabled(), *(module.training for model in models for module in model.modules())]


def hooks_in(*models: nn.Module) -> int:
    """Return how many hooks hang on the parts and the parameters of the models."""
    return hooks_on(*parts_of(*models))


def marks_on(**tensors: torch.Tensor) -> list[str]:
    """Say which tensors have a hook or keep their gradient, and whether recording is switched off."""
    marks = [f"a hook on {name}" for name, tensor in tensors.items() if hooks_on(tensor)]
    marks += [f"retain_grad() on {name}" for name, tensor in tensors.items() if tensor.retains_grad]
    return marks if torch.is_grad_enabled() else [*marks, "recording switched off"]


def gradients_of(result: torch.Tensor, tensors: Sequence[torch.Tensor], seed: torch.Tensor) -> list[Any] | None:
    """Return the gradients that reach tensors; None where none can be taken, as after a pass that freed the graph."""
    try:
        return [plain(gradient) for gradient in torch.autograd.grad(result, tensors, seed, allow_unused=True)]
    except RuntimeError:
        return None


def is_result(value: object) -> bool:
    return type(value) is torch.Tensor and value.requires_grad and value.numel() > 0
