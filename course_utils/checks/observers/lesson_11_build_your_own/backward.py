"""Running an engine in stage 2, `backward`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from course_utils.checks.data import Observation
from course_utils.checks.observers.lesson_11_build_your_own import record
from course_utils.checks.observers.lesson_11_build_your_own.engines import (
    Engine,
    Look,
    attempt,
    numbers,
    observer,
    overflows,
)
from course_utils.checks.observers.lesson_11_build_your_own.record import leaves_of
from course_utils.checks.scenes.lesson_11_build_your_own.arrays import LEFT, RIGHT
from course_utils.checks.scenes.lesson_11_build_your_own.expressions import Expression, run
from course_utils.checks.scenes.lesson_11_build_your_own.named import NAMED, UPSTREAM

PARTS = (*record.PARTS, "t.backward()", "t.grad")

# A chain of so many operations, with room for so many calls in one another: recursion ends there.
_CHAIN, _DEPTH = 1500, 300


def upstream(result: Any) -> np.ndarray[Any, Any]:
    """Return the gradient that a pass from a result begins with."""
    count = int(np.prod(result.shape))
    return np.array(UPSTREAM[:count]).reshape(result.shape)


def _passed(engine: Engine, expression: Expression, start: bool) -> Observation:
    leaves = leaves_of(engine, expression)
    result = run(expression, leaves)[-1]
    given = engine.tensor(upstream(result)) if start else None
    result.backward(*([given] if start else []))
    return {
        "value": numbers(result),
        "gradients": [numbers(leaf.grad) for leaf in leaves],
        "left": given is None or bool(np.array_equal(given.numpy(), upstream(result))),
    }


def _without(engine: Engine) -> str:
    x = engine.tensor([1.0, 2.0], requires_grad=True)
    (x * 2).backward()
    return "no error"


def _scaled(engine: Engine) -> Any:
    x = engine.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward(engine.tensor(3.0))
    return numbers(x.grad)


def _single(engine: Engine) -> Any:
    x = engine.tensor([[1.5]], requires_grad=True)
    (x * x + x).backward()
    return numbers(x.grad)


def _beside_an_array(engine: Engine) -> Any:
    x, array = engine.tensor(LEFT, requires_grad=True), np.array(RIGHT)
    (((x + array) * array - array) @ array).backward(engine.tensor(LEFT))
    return numbers(x.grad)


def _on_a_constant(engine: Engine) -> str:
    (engine.tensor([1.0, 2.0]) * 2).sum().backward()
    return "no error"


def _counted(engine: Engine, kind: str, leaves: int) -> int:
    """Return how often the rule of one node ran, with so many leaves behind it, whose result has many paths.

    Each run overflows once, whatever gradient it is given: what arrives is at least 1e10, the derivative 1e300.
    """
    x = engine.tensor({"multiply": [1e-300], "exp": [690.7], "log": [1e-300]}[kind], requires_grad=True)
    for _ in range(leaves - 1):
        x = x + engine.tensor([0.0], requires_grad=True)
    y = x * 1e300 if kind == "multiply" else x.exp() if kind == "exp" else x.log()
    z = y
    for _ in range(6):
        z = z + z
        z = z + y
    with overflows() as seen:
        z.backward(engine.tensor([1e10]))
    return len(seen)


def _long(engine: Engine) -> Any:
    x = engine.tensor(1.0, requires_grad=True)
    y = x
    for n in range(_CHAIN):
        y = y * 1.001 if n % 2 else y + 0.1
    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1  # type: ignore[assignment]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + _DEPTH)
    try:
        y.backward()
    finally:
        sys.setrecursionlimit(limit)
    return numbers(x.grad)


def look(engine: Engine, given: dict[str, Any]) -> Observation:
    with np.errstate(all="ignore"):
        return {
            "named": {name: attempt(lambda e=e: _passed(engine, e, True)) for name, e in NAMED.items()},  # type: ignore[misc]
            "without": attempt(lambda: _without(engine)),
            "scaled": attempt(lambda: _scaled(engine)),
            "single": attempt(lambda: _single(engine)),
            "beside": attempt(lambda: _beside_an_array(engine)),
            "constant": attempt(lambda: _on_a_constant(engine)),
            "counted": {k: attempt(lambda k=k: _counted(engine, k, 1)) for k in ("multiply", "exp", "log")},  # type: ignore[misc]
            "of two leaves": attempt(lambda: _counted(engine, "multiply", 2)),
            "long": attempt(lambda: _long(engine)),
            "random": [attempt(lambda e=e: _passed(engine, e, False)) for e in given["expressions"]],  # type: ignore[misc]
        }


LOOK = Look(PARTS, look)
observe = observer(record=record.LOOK, backward=LOOK)
