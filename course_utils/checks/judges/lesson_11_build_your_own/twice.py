"""Comparing an engine's gradients of gradients with PyTorch's."""

from __future__ import annotations

from typing import Any

import torch

from course_utils.checks.data import Array, Raised
from course_utils.checks.judges.lesson_11_build_your_own.oracle import difference, leaves_of
from course_utils.checks.judges.lesson_11_build_your_own.stages import told
from course_utils.checks.scenes.lesson_11_build_your_own.expressions import Expression, run
from course_utils.checks.scenes.lesson_11_build_your_own.named import UPSTREAM

_NAMES = "abcdefgh"


def twice(expression: Expression, start: bool) -> tuple[list[Any], list[Any], list[str]]:
    """Return the gradients of a result, those of a sum made of them, and the names of the leaves asked for."""
    leaves = leaves_of(expression)
    result = run(expression, leaves)[-1]
    asked = [leaf for leaf in leaves if leaf.requires_grad]
    names = [name for name, leaf in zip(_NAMES, leaves, strict=False) if leaf.requires_grad]
    numbers = torch.tensor(UPSTREAM[: result.numel()], dtype=torch.float64).reshape(result.shape)
    first = torch.autograd.grad(result, asked, numbers if start else None, create_graph=True, allow_unused=True)
    total = sum((g * g * leaf).sum() for g, leaf in zip(first, asked, strict=True) if g is not None)
    second = torch.autograd.grad(total, asked, allow_unused=True)  # type: ignore[arg-type]
    return [None if g is None else g.detach() for g in first], list(second), names


def wrong_twice(expression: Expression, seen: Any, start: bool = False) -> str | None:
    """Say what is wrong with an expression's gradients, or with those of a sum made of them; None if nothing is."""
    if isinstance(seen, Raised):
        return f"raised {told(seen)}"
    first, second, names = twice(expression, start)
    # Zeros in place of None are told by a finding of their own.
    found = [
        None if right is None and isinstance(value, Array) and not value.tensor().any() else value
        for value, right in zip(seen["first"], first, strict=True)
    ]
    text = difference(found, first, names)
    if text is not None:
        return text
    # Where a derivative is zero, one engine has a graph that leads to zeros and another has none.
    mine = [
        _zeros(right) if value is None and right is not None else value
        for value, right in zip(seen["second"], second, strict=True)
    ]
    wanted = [_nothing(value) if right is None else right for value, right in zip(mine, second, strict=True)]
    text = difference(mine, wanted, [f"the sum of g * g * leaf with respect to {name}" for name in names])
    return None if text is None else f"of its gradients g, taken with create_graph=True: {text}"


def _zeros(right: torch.Tensor) -> Any:
    return Array.of(torch.zeros_like(right))


def _nothing(value: Any) -> torch.Tensor | None:
    return torch.zeros(value.shape, dtype=torch.float64) if isinstance(value, Array) else None
