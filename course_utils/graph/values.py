"""The numbers that a tensor holds, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import torch

from course_utils.graph import digits
from course_utils.graph.events import WHOLE
from course_utils.graph.memory import shape_of
from course_utils.graph.trace import ACCUMULATE, LiveNode

# So many numbers stand in a row of a picture, and so many rows.
_LONGEST = 6
# More numbers than this are not told within a line.
_IN_LINE = 4


class Value(msgspec.Struct, frozen=True, gc=False):
    """What a tensor holds: `numbers` as `tolist` gives them where there are at most WHOLE, else `least` and `most`."""

    shape: tuple[int, ...]
    numbers: Any = None
    least: float | None = None
    most: float | None = None


def value_of(tensor: torch.Tensor) -> Value | None:
    """Return what a tensor holds, or None where there are no numbers to read (a fake tensor, a sparse one)."""
    if tensor.layout is not torch.strided or tensor.is_nested:
        return None
    shape = shape_of(tensor)
    try:
        tensor = tensor.detach()
        if tensor.numel() <= WHOLE:
            return Value(shape, tensor.tolist())
        if tensor.is_complex():
            return None
        least, most = tensor.aminmax()
        return Value(shape, None, least.item(), most.item())
    except (RuntimeError, NotImplementedError):
        return None


def values_of(nodes: Sequence[LiveNode], named: Mapping[int, Mapping[str, torch.Tensor]]) -> dict[int, list[Value]]:
    """Return by node's number what its tensors hold: those that `named` has for it, or a leaf without a name."""
    values = {}
    for index, node in enumerate(nodes):
        if index in named:
            tensors = list(named[index].values())
        elif type(node).__name__ == ACCUMULATE:
            tensors = [node.variable]
        else:
            continue
        found = [value_of(tensor) for tensor in tensors]
        if all(found):
            values[index] = [value for value in found if value is not None]
    return values


def in_line(value: Value) -> str:
    """Return a value within a line: "3", "[1, 2]", or "" where it has more numbers than a line should hold."""
    few = value.numbers is not None and len(digits.flat(value.numbers)) <= _IN_LINE
    return digits.listed(value.numbers) if few else ""


def whole(value: Value) -> str:
    """Return a value as an alt text says it: "= [1, 2, 3, 4, 5]", or "(64, 10) from -0.9 to 0.8"."""
    if value.numbers is None:
        return f"{value.shape} from {extent(value)}"
    return f"= {digits.listed(value.numbers)}"


def extent(value: Value) -> str:
    """Return the range of a value's numbers: "-0.9 to 0.8"."""
    numbers = [value.least, value.most] if value.numbers is None else digits.flat(value.numbers)
    if any(isinstance(number, complex) for number in numbers):
        return "complex numbers"
    return f"{digits.short(min(numbers))} to {digits.short(max(numbers))}" if numbers else "no numbers"


def in_rows(shape: Sequence[int], numbers: Any) -> tuple[str, ...]:
    """Return numbers as rows of a picture: one row, or those of a small matrix; none where they do not fit."""
    if numbers is None or len(shape) > 2 or not all(shape) or max(shape, default=0) > _LONGEST:
        return ()
    return digits.table(numbers) if shape else (digits.short(numbers),)
