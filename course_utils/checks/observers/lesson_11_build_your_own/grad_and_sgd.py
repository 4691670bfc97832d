"""Running an engine in stage 7, `grad_and_sgd`."""

from __future__ import annotations

from typing import Any

import numpy as np

from course_utils.checks.data import Observation
from course_utils.checks.observers.lesson_11_build_your_own import backward, record
from course_utils.checks.observers.lesson_11_build_your_own.engines import (
    Engine,
    Look,
    array_of,
    attempt,
    numbers,
    observer,
)

_NAMES = ("w", "unused", "b")
PARTS = (*backward.PARTS, "engine.SGD")


def _added(engine: Engine) -> Observation:
    x = engine.tensor([1.5, 2.5], requires_grad=True)
    h = x * 2.0
    result = h.sum()
    result.backward()
    between, begun = numbers(h.grad), numbers(result.grad)
    (x * 3.0).sum().backward()
    return {"between": between, "begun": begun, "second": numbers(x.grad)}


def _array(gradient: Any) -> np.ndarray[Any, Any]:
    return np.asarray(gradient.numpy() if hasattr(gradient, "numpy") else gradient)


def _apart(engine: Engine) -> Observation:
    x, y = (engine.tensor([1.5, 2.5], requires_grad=True) for _ in range(2))
    given = engine.tensor([1.0, 1.0])
    (x + y).backward(given)
    of_x, of_y, start = (_array(one) for one in (x.grad, y.grad, given))
    shared = bool(np.shares_memory(of_x, of_y) or np.shares_memory(of_x, start) or np.shares_memory(of_y, start))
    seen = {"x": numbers(x.grad), "shared": shared}
    (y * 3.0).sum().backward()
    return {**seen, "x after": numbers(x.grad), "y": numbers(y.grad), "given": numbers(given)}


def _loss(engine: Engine, given: dict[str, Any], parameters: list[Any], step: int) -> Any:
    w, _, b = parameters
    inputs = engine.tensor(array_of(given["inputs"]) + 0.1 * step)
    error = inputs @ w + b - engine.tensor(array_of(given["targets"]))
    return (error * error).sum() * 0.1


def _trained(engine: Engine, given: dict[str, Any]) -> Observation:
    arrays_in_columns = (np.array(array_of(given[name]), order="F") for name in _NAMES)  # a copy may keep their order
    parameters = [engine.tensor(array, requires_grad=True) for array in arrays_in_columns]
    optimizer = engine.SGD((parameter for parameter in parameters), lr=given["rate"])
    # Of a single number `numpy()` may give NumPy's number, which no step can reach.
    arrays = [(it, array) for it in parameters if isinstance(array := it.numpy(), np.ndarray)]
    after, cleared, left, emptied = [], [], [], []
    for step in range(4):
        optimizer.zero_grad()
        cleared.append([numbers(parameter.grad) for parameter in parameters])
        _loss(engine, given, parameters, step).backward()
        before = [numbers(parameter.grad) for parameter in parameters]
        optimizer.step()
        grads = [numbers(parameter.grad) for parameter in parameters]
        left.append(before == grads)
        emptied.append(
            all(
                one is None or not _array(parameter.grad).any()
                for one, parameter in zip(grads, parameters, strict=True)
            )
        )
        after.append([numbers(parameter) for parameter in parameters])
    return {
        "after": after,
        "cleared": cleared,
        "left": left,
        "emptied": emptied,
        "in place": all(np.array_equal(kept, _array(parameter)) for parameter, kept in arrays),
        "states": [[bool(one.requires_grad), one.grad_fn is not None] for one in parameters],
    }


def _cleared(engine: Engine) -> list[Any]:
    """Return what a gradient is after zero_grad() where no step came between, after the first pass and the second."""
    x = engine.tensor([1.5, 2.5], requires_grad=True)
    optimizer, found = engine.SGD([x], 0.5), []
    for _ in range(2):
        (x * 3.0).sum().backward()
        optimizer.zero_grad()
        found.append(numbers(x.grad))
    return found


def look(engine: Engine, given: dict[str, Any]) -> Observation:
    return {
        "added": attempt(lambda: _added(engine)),
        "apart": attempt(lambda: _apart(engine)),
        "trained": attempt(lambda: _trained(engine, given)),
        "cleared": attempt(lambda: _cleared(engine)),
    }


LOOK = Look(PARTS, look)
observe = observer(record=record.LOOK, backward=backward.LOOK, grad_and_sgd=LOOK)
