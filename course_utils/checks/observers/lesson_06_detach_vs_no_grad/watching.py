"""What the observers of lesson 06 look at: runs of a model, what was saved, and what must be as before."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Array, plain
from course_utils.checks.observers.traces import hooks_on, parts_of
from course_utils.graph.saved import kept
from course_utils.graph.trace import walk


def flags(model: nn.Module) -> dict[str, bool]:
    """Return each parameter's requires_grad."""
    return {name: parameter.requires_grad for name, parameter in model.named_parameters()}


class Runs:
    """The results of one module: how many, which required a gradient, and whether their graphs still hold anything."""

    def __init__(self, model: nn.Sequential) -> None:
        self.live: list[bool] = []
        self._nodes: list[Any] = []
        self._handle = model[-1].register_forward_hook(self._note)

    def _note(self, module: nn.Module, given: Any, result: torch.Tensor) -> None:
        self.live.append(result.requires_grad)
        if result.grad_fn is not None:
            self._nodes.append(result.grad_fn)

    def held(self) -> bool:
        """Return whether a graph behind any result still has its saved tensors."""
        return any(state == "held" for node in walk(self._nodes) for _, state, _ in kept(node))

    def close(self) -> None:
        self._handle.remove()


def numbers_in(model: nn.Module) -> list[Array]:
    return [Array.of(parameter) for parameter in model.parameters()]


def gradients_in(model: nn.Module) -> list[Any]:
    return [plain(parameter.grad) for parameter in model.parameters()]


def modes_of(*models: nn.Module) -> list[bool]:
    """Return whether recording is on, and the mode of each part of the models."""
    return [torch.is_grad_enabled(), *(module.training for model in models for module in model.modules())]


def hooks_in(*models: nn.Module) -> int:
    """Return how many hooks hang on the parts and the parameters of the models."""
    return hooks_on(*parts_of(*models))


def unmarked(*tensors: torch.Tensor) -> bool:
    """Return whether no tensor has a hook, or keeps its gradient."""
    return not hooks_on(*tensors) and not any(tensor.retains_grad for tensor in tensors)


def is_result(value: object) -> bool:
    return type(value) is torch.Tensor and value.requires_grad and value.numel() > 0
