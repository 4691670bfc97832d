"""Results with shared parts, and passes over them, which run on PyTorch's tensors as on those of an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

NUMBERS = (0.5, 1.25, 2.0)


@dataclass(frozen=True)
class Passes:
    """What is built from one leaf x, and which passes then run, in this order: each a result, and retain_graph.

    With None for retain_graph the pass is called without it.
    """

    build: Callable[[Any], dict[str, Any]]
    passes: tuple[tuple[str, bool | None], ...]


def _one(x: Any) -> dict[str, Any]:
    return {"y": (x.exp() * x).sum()}


def _trunk(x: Any) -> dict[str, Any]:
    h = x.exp()
    return {"a": (h * h).sum(), "b": (h.log() * 3.0).sum(), "c": (x * x).sum()}


def _anew(x: Any) -> dict[str, Any]:
    return {name: (x * x).log().sum() for name in "abc"}


def _joins(x: Any) -> dict[str, Any]:
    y = x.exp()
    for _ in range(3):
        y = y * (y * 0.5 + x).log()
    return {"y": y.sum()}


def _every(x: Any) -> dict[str, Any]:
    """Use every operation, each in a summand of its own: no summand hides what another lost."""
    row, column = x.reshape((1, 3)), x.reshape((3, 1))
    weights = x[[2, 0, 0]]
    y = x.exp() * 0.3 + x.log() * 2.0 + (x - 1.0).relu() * weights + (2.0 - x) * x
    y = y + (column @ row @ column).reshape((3,)) + (row * column).sum(axis=-1) * weights
    return {"y": (y * y).sum()}


def _several(x: Any) -> dict[str, Any]:
    """Return a result of several numbers: a pass is given the gradient to begin with."""
    return {"y": x.exp() * x}


def _direct(x: Any) -> dict[str, Any]:
    """Return results that are made of the leaf itself, with nothing in between."""
    return {"a": x.sum(), "b": x[1]}


WITHOUT = {
    "the same result twice": Passes(_one, (("y", None), ("y", None))),
    "two results that share a part": Passes(_trunk, (("a", None), ("b", None))),
    "two results that share only the leaf": Passes(_trunk, (("a", None), ("c", None))),
    "three results, each made anew": Passes(_anew, (("a", None), ("b", None), ("c", None))),
    "a result of several numbers, twice": Passes(_several, (("y", None), ("y", None))),
    "x.sum(), then x[1]": Passes(_direct, (("a", None), ("b", None))),
}
WITH = {
    "kept, kept, not kept, once more": Passes(_joins, (("y", True), ("y", True), ("y", False), ("y", False))),
    "a kept, then b over the shared part, then a": Passes(_trunk, (("a", True), ("b", False), ("a", False))),
    "a not kept, then b over the shared part": Passes(_trunk, (("a", False), ("b", True))),
    "a kept, then c, then both again": Passes(_trunk, (("a", True), ("c", False), ("a", False), ("c", False))),
    "without the argument": Passes(_one, (("y", None), ("y", None))),
    "every operation, kept, kept, not kept": Passes(_every, (("y", True), ("y", True), ("y", False))),
    "several numbers, kept, not kept, once more": Passes(_several, (("y", True), ("y", False), ("y", False))),
}


def run_pass(result: Any, retain: bool | None, tensor: Callable[[Any], Any]) -> None:
    """Run one pass. One from several numbers begins with ones, which `tensor` makes of an array.

    Such a pass gets its flag by place, if it is to retain, and else both arguments by name.
    """
    shape = tuple(result.shape)
    if shape == ():
        result.backward(**({} if retain is None else {"retain_graph": retain}))
        return
    ones = tensor(np.ones(shape))
    if retain is None:
        result.backward(ones)
    elif retain:
        result.backward(ones, True)
    else:
        result.backward(gradient=ones, retain_graph=False)
