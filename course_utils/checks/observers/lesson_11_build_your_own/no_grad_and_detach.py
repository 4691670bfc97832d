"""Running an engine in stage 6, `no_grad_and_detach`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.checks.data import Observation
from course_utils.checks.observers.lesson_11_build_your_own import record
from course_utils.checks.observers.lesson_11_build_your_own.engines import Engine, Look, attempt, behind, observer
from course_utils.checks.observers.lesson_11_build_your_own.memory import counting, large
from course_utils.checks.scenes.lesson_11_build_your_own.kept import KEPT

PARTS = (*record.PARTS, "engine.no_grad", "t.detach()")


class _Failed(Exception):
    """What a block with no_grad ends in."""


class _Stopped(BaseException):
    """What it ends in where somebody stops it: `except Exception` does not see it."""


def _state(tensor: Any) -> list[bool]:
    return [bool(tensor.requires_grad), tensor.grad_fn is not None]


def _leaf(engine: Engine) -> Any:
    return engine.tensor([1.5, 2.5], requires_grad=True)


def _switched(engine: Engine) -> Observation:
    x = _leaf(engine)
    with engine.no_grad():
        seen = {"inside": _state(x * x), "leaf inside": _state(x), "made inside": _state(_leaf(engine))}
        with engine.no_grad():
            pass
        seen["after an inner block"] = _state(x.exp())
    return {**seen, "after": _state(x * x)}


def _called(engine: Engine) -> Observation:
    """Look at what is recorded between the call and the block, and around blocks whose call came long before."""
    x = _leaf(engine)
    block, inner = engine.no_grad(), engine.no_grad()
    seen = {"called": _state(x * x)}
    with block:
        seen["entered later"] = _state(x * x)
        with inner:
            pass
        seen["after an inner one"] = _state(x * x)
    return {**seen, "left": _state(x * x)}


def _every(engine: Engine) -> list[str]:
    """Return the operations that are recorded inside a block."""
    x = engine.tensor([[1.5, 2.5], [0.5, 1.0]], requires_grad=True)
    done: dict[str, Callable[[], Any]] = {
        "x + x": lambda: x + x,
        "x + 1.0": lambda: x + 1.0,
        "x - x": lambda: x - x,
        "2.0 - x": lambda: 2.0 - x,
        "2.0 * x": lambda: 2.0 * x,
        "x @ x": lambda: x @ x,
        "x.exp()": x.exp,
        "x.log()": x.log,
        "x.relu()": x.relu,
        "x.sum()": x.sum,
        "x.sum(axis=0)": lambda: x.sum(axis=0),
        "x.reshape((4,))": lambda: x.reshape((4,)),
        "x[0]": lambda: x[0],
        "x[[0, 0]]": lambda: x[[0, 0]],
    }
    with engine.no_grad():
        return [name for name, operation in done.items() if any(_state(operation()))]


def _raising(engine: Engine) -> Observation:
    x = _leaf(engine)
    kinds: tuple[type[BaseException], ...] = (_Failed, _Stopped)
    passed: list[bool] = []
    after: list[list[bool]] = []
    for kind in kinds:
        try:
            with engine.no_grad():
                raise kind
        except kind:
            passed.append(True)
        else:
            passed.append(False)
        after.append(_state(x * x))
    return {"passed on": all(passed), "after": after}


def _kept(engine: Engine) -> float:
    x, c = large(engine)
    with counting() as alive:
        with engine.no_grad():
            result = KEPT["((x + 1.0) * (x - 1.5)).sum()"](x, c)
        count = alive()
    del result
    return count


def _detached(engine: Engine) -> Observation:
    x = _leaf(engine)
    y = x * 2.0
    before = sum(map(len, behind(y)))
    cut = y.detach()
    z = cut * x
    numbers = [float(number) for number in cut.numpy()]
    constant = engine.tensor([1.5, 2.5])
    turned = engine.tensor(np.array([[1.5, 2.5], [0.5, 1.0]]).T)
    copied = {"y": y, "x": x, "c": constant, "d": turned}
    return {
        "state": _state(cut),
        "copied": [name for name, t in copied.items() if not np.shares_memory(t.detach().numpy(), t.numpy())],
        "same": [name for name, t in {"c": constant, "(c * 2.0)": constant * 2.0}.items() if t.detach() is t],
        "numbers": numbers,
        "original": _state(y),
        "whole": sum(map(len, behind(y))) == before,
        "leaf": [_state(x.detach()), _state(x)],
        "reaches": any(node is y.grad_fn for node in behind(z)[0]),
        "result": _state(z),
        "other": cut is not y,
    }


def _alive(engine: Engine) -> float:
    x, _ = large(engine)
    with counting() as alive:
        cut = ((x + 1.0) * (x - 1.5)).detach()  # type: ignore[attr-defined, operator]
        count = alive()
    del cut
    return count


def look(engine: Engine, given: dict[str, Any]) -> Observation:
    # The ones that may leave recording off come last.
    return {
        "detached": attempt(lambda: _detached(engine)),
        "kept": attempt(lambda: _kept(engine)),
        "alive": attempt(lambda: _alive(engine)),
        "every": attempt(lambda: _every(engine)),
        "switched": attempt(lambda: _switched(engine)),
        "called": attempt(lambda: _called(engine)),
        "raising": attempt(lambda: _raising(engine)),
    }


LOOK = Look(PARTS, look)
observe = observer(record=record.LOOK, no_grad_and_detach=LOOK)
