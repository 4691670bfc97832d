"""Results of which a graph keeps a countable number of large arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SIDE = 128  # each array has SIDE * SIDE numbers: 131,072 bytes
NBYTES = SIDE * SIDE * 8

# Functions of a leaf x with numbers between 0.5 and 1.5, and of a constant c.
KEPT: dict[str, Callable[[Any, Any], Any]] = {
    "((x + 1.5) - x + c).reshape((64, 256))[1:].sum()": lambda x, c: ((x + 1.5) - x + c).reshape((64, 256))[1:].sum(),
    "((x + 1.0) * c + c * (x + 2.0)).sum()": lambda x, c: ((x + 1.0) * c + c * (x + 2.0)).sum(),
    "((x + 1.0) * (x - 1.5)).sum()": lambda x, c: ((x + 1.0) * (x - 1.5)).sum(),
    "((x * 0.5).exp() * 0.3).exp().sum()": lambda x, c: ((x * 0.5).exp() * 0.3).exp().sum(),
    "((x + 3.0).log() + 3.0).log().sum()": lambda x, c: ((x + 3.0).log() + 3.0).log().sum(),
    "((x - 1.0).relu() + 0.5).sum()": lambda x, c: ((x - 1.0).relu() + 0.5).sum(),
    # A mask of bools is an eighth of an array: beside another array it shows in the sum of several.
    "sum((x - n / 4).relu() for n in range(6)).sum()": lambda x, c: sum((x - n / 4).relu() for n in range(6)).sum(),
    "((x + 1.0) @ c + c @ (x - 1.5)).sum()": lambda x, c: ((x + 1.0) @ c + c @ (x - 1.5)).sum(),
    "((x + 1.0) @ (x - 1.5)).sum()": lambda x, c: ((x + 1.0) @ (x - 1.5)).sum(),
    # The node that the result itself holds keeps something.
    "(x + 1.0).reshape((1, 16384)) @ (x - 1.5).reshape((16384, 1))": lambda x, c: (
        (x + 1.0).reshape((1, 16384)) @ (x - 1.5).reshape((16384, 1))
    ),
}
