"""A point to differentiate at, and what an answer returned and left there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Case, Observation, Value, plain
from course_utils.checks.observers.lesson_05_higher_order_gradients.surroundings import changed
from course_utils.checks.scenes.numbers import by_columns


def point(case: Case, name: str = "x") -> torch.Tensor:
    """Return x or v, not contiguous where it is a matrix, as a leaf with an old gradient where the case asks for it."""
    x: torch.Tensor = case.given[name].tensor()
    if x.dim() == 2:
        x = by_columns(x)
    if case.given["requires_grad"]:
        x.requires_grad_()
        x.grad = torch.full_like(x, 7.0)
    return x


def result_of(returned: Any) -> Observation:
    return {"returned": plain(returned), "recorded": recorded(returned)}


def recorded(value: Any) -> bool:
    return type(value) in (torch.Tensor, nn.Parameter) and value.requires_grad


def left_behind(tensors: dict[str, torch.Tensor], case: Case, before: dict[str, Any], seen: Observation) -> Observation:
    """Add to what was seen what of the given tensors, and of `before`, is no longer as it was."""
    held = case.given["requires_grad"]
    left = dict.fromkeys([*seen["left"], *changed(before, None, **tensors)])
    return {
        **seen,
        "changed": [name for name, tensor in tensors.items() if plain(tensor) != case.given[name]],
        "requiring": [name for name, tensor in tensors.items() if tensor.requires_grad != held],
        "graded": [name for name, tensor in tensors.items() if not _grad_is(tensor, 7.0 if held else None)],
        "left": list(left)[:3],
    }


def _grad_is(tensor: torch.Tensor, number: float | None) -> bool:
    if tensor.grad is None or number is None:
        return tensor.grad is None and number is None
    return bool((tensor.grad == number).all())


def touched(before: list[tuple[Value, Value, bool]], parameters: Iterable[torch.Tensor]) -> list[str]:
    """Say what of parameters is not as their states before tell: "its numbers", "its .grad", "its requires_grad"."""
    now = [state(parameter) for parameter in parameters]
    parts = ("its numbers", "its .grad", "its requires_grad")
    return [part for place, part in enumerate(parts) if [it[place] for it in before] != [it[place] for it in now]]


def state(parameter: torch.Tensor) -> tuple[Value, Value, bool]:
    """Return a parameter's numbers, its gradient, and whether it requires one."""
    return plain(parameter), plain(parameter.grad), parameter.requires_grad
