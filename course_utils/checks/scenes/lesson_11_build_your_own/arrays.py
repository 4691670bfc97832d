"""What tensors are made of, what stands beside them, and what is asked of three axes: the same on NumPy's arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# What `engine.tensor` is given. Each is exact in float64.
GIVEN: dict[str, Any] = {
    "an array of int64": np.array([1, 2, 3]),
    "an array of int8": np.array([[1], [-2]], dtype=np.int8),
    "an array of bool": np.array([True, False]),
    "an array of float32": np.array([0.5, 0.1], dtype=np.float32),
    "an array of float16": np.array([0.5, 0.1], dtype=np.float16),
    "a list of whole numbers": [1, 2, 3],
    "a tuple of tuples": ((1, 2), (3, 4)),
    "a whole number": 3,
    "a number": 0.5,
}

# A leaf, and an array on the right of it.
LEFT = [[0.5, 2.5], [1.5, -1.0]]
RIGHT = [[2.0, 3.0], [-0.5, 1.25]]


def cube() -> np.ndarray[Any, Any]:
    """Return an array with three axes of unequal length, and no number twice."""
    return np.arange(24.0).reshape(3, 2, 4) ** 2 / 8.0


def _sum(axis: int | None, keepdims: bool) -> Callable[[Any], Any]:
    return lambda x: x.sum(axis=axis, keepdims=keepdims)


ON_THREE_AXES: dict[str, Callable[[Any], Any]] = {
    **{
        f"x.sum(axis={axis}, keepdims={keepdims})": _sum(axis, keepdims)
        for axis in (None, 0, 1, 2, -1, -2, -3)
        for keepdims in (False, True)
    },
    "x.sum(1)": lambda x: x.sum(1),
    "x[-1]": lambda x: x[-1],
    "x[1, -2, 0]": lambda x: x[1, -2, 0],
    "x[..., -1]": lambda x: x[..., -1],
    "x[:, None, ::-2]": lambda x: x[:, None, ::-2],
    "x[[0, -1, 1]]": lambda x: x[[0, -1, 1]],
    "x[:, [-1, 0], [0, -2]]": lambda x: x[:, [-1, 0], [0, -2]],
    "x[np.array([False, True, True])]": lambda x: x[np.array([False, True, True])],
    "x.reshape((4, 6))": lambda x: x.reshape((4, 6)),
    "x.reshape((2, -1))": lambda x: x.reshape((2, -1)),
}
