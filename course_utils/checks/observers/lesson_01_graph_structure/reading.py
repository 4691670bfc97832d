"""Lists of nodes and leaves as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch

from course_utils.checks.data import Value, plain


def tracked(tensor: torch.Tensor) -> list[torch.Tensor]:
    return [tensor] if tensor.requires_grad else []


def items(result: object, place: Callable[[object], Value]) -> Value:
    """Describe each item of a returned list, tuple or set; anything else as plain data that is no list."""
    if type(result) in (list, tuple, set):
        items: Iterable[object] = result  # type: ignore[assignment]
        return [place(item) for item in items]
    return plain(result)
