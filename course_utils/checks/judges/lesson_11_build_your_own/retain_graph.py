"""Judging stage 4, `retain_graph`: a graph for more than one pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from course_utils.checks.compare import close
from course_utils.checks.data import Array, Observation
from course_utils.checks.exercise import Finding, Misconception
from course_utils.checks.judges.lesson_11_build_your_own import save_and_free
from course_utils.checks.judges.lesson_11_build_your_own.freeing import (
    ended,
    kept,
    passes,
    passes_of,
    right_gradients,
    too_many,
)
from course_utils.checks.judges.lesson_11_build_your_own.stages import Stage, exercise, nothing, raised
from course_utils.checks.scenes.lesson_11_build_your_own.passes import WITH

_MOMENTS = {
    "retained": "After a pass with retain_graph=True from `{}`",
    "after": "After a second pass without it, from `{}`",
    "dropped": "When the result of `{}` is deleted after a pass with retain_graph=True",
}
_THREE, _SHARED, _FIRST, _BOTH, _PLAIN, _EVERY, _ = WITH
_OVER = "RuntimeError"
_RIGHT = {
    _THREE: ["ok", "ok", "ok", _OVER],
    _SHARED: ["ok", "ok", _OVER],
    _FIRST: ["ok", _OVER],
    _BOTH: ["ok", "ok", "ok", _OVER],
    _PLAIN: ["ok", _OVER],
    _EVERY: ["ok", "ok", "ok"],
}


def _judge(given: dict[str, Any], seen: Observation) -> Iterator[Finding]:
    yield from passes(seen["passes"], WITH)
    yield from kept(seen["kept"], _MOMENTS)


def _how(seen: Observation, name: str, *passes: str) -> bool:
    return ended(seen["passes"], name) == list(passes)


def _as_it_should(seen: Observation, *but: str) -> bool:
    return all(ended(seen["passes"], name) == how for name, how in _RIGHT.items() if name not in but)


def _second(seen: Observation) -> Any:
    """Return what the second of several passes gave, where it did not raise."""
    mine = seen["passes"][_THREE]
    return None if raised(mine) or raised(mine[1]) else mine[1]


def _right_gradients(seen: Observation) -> bool:
    return right_gradients(seen["passes"], WITH)


def _only(seen: Observation, *wrong: str) -> bool:
    if any(raised(one) for one in seen["kept"].values()):
        return False
    return all(too_many(seen["kept"], moment) == (moment in wrong) for moment in _MOMENTS)


def _grown(case: Any, seen: Observation) -> bool:
    second, right = _second(seen), passes_of(WITH[_THREE])[1]
    if right is None or not isinstance(second, Array) or second.shape != tuple(right.shape):
        return False
    return bool((second.tensor().abs() > 1.01 * right.abs()).all()) and _as_it_should(seen)


def _lost(case: Any, seen: Observation) -> bool:
    second = _second(seen)
    mine, right = seen["passes"][_THREE], passes_of(WITH[_THREE])[0]
    if raised(mine) or raised(mine[0]) or raised(mine[1]) or right is None or not close(mine[0], right):
        return False
    return second is None or (isinstance(second, Array) and not bool(second.tensor().any()))


STAGE = Stage("retain_graph", nothing, _judge, (save_and_free.STAGE,))

EXERCISE = exercise(
    STAGE,
    1,
    title="Retain the graph",
    difficulty=2,
    minutes=15,
    points=2,
    hints=(
        "It is the freeing of stage 3, left out on request. What else does a pass leave behind that the next one would "
        "find?",
        "Give the pass the argument, and free only where it is not set. Everything that a pass counts or adds up "
        "belongs to that pass: in variables of the function, not on the nodes.",
        "def backward(self, gradient=None, retain_graph=False): ... after the rule of a node: `if not retain_graph: "
        "node.kept = None`. The counts and the gradients so far are dicts that the function makes anew.",
    ),
    misconceptions=(
        Misconception(
            "retain_graph is ignored",
            "After a pass with retain_graph=True the next one raises: the graph was freed all the same.",
            lambda case, seen: (
                _how(seen, _THREE, "ok", _OVER, _OVER, _OVER) and _how(seen, _SHARED, "ok", _OVER, _OVER)
            ),
        ),
        Misconception(
            "whatever it says",
            "A pass that is given retain_graph=False keeps the graph, as if it were True. What counts is the value, "
            "not whether it was given.",
            lambda case, seen: _how(seen, _FIRST, "ok", "ok") and _how(seen, _PLAIN, "ok", _OVER),
        ),
        Misconception(
            "retained once, retained for ever",
            "A graph that was retained once is not freed by a later pass without it. Each pass says for itself.",
            lambda case, seen: (
                _how(seen, _THREE, "ok", "ok", "ok", "ok")
                and _how(seen, _FIRST, "ok", _OVER)
                and _how(seen, _PLAIN, "ok", _OVER)
                and _only(seen, "after")
            ),
        ),
        Misconception(
            "the first pass counts again",
            "The second pass gave more than the first, as where something that the first pass added up is still there: "
            "at nodes, or in the gradient that a pass begins with.",
            _grown,
        ),
        Misconception(
            "the second pass does nothing",
            "The first pass is right, and the second one over the retained graph brings nothing to the leaf: what it "
            "counts down, or marks as done, was used up by the first.",
            _lost,
        ),
        Misconception(
            "copies for the next pass",
            "While a graph is retained, more arrays are alive than before the pass: copies of what nodes keep, or the "
            "gradients that came by. It is enough not to free what is there.",
            lambda case, seen: _only(seen, "retained") and _as_it_should(seen) and _right_gradients(seen),
        ),
        Misconception(
            "held by the engine",
            "A retained graph stays when its result is deleted. Retaining means not to free in a pass; as before, a "
            "graph dies with the last reference to it.",
            lambda case, seen: too_many(seen["kept"], "dropped") and _as_it_should(seen) and _right_gradients(seen),
        ),
        Misconception(
            "over a shared part",
            "After a retained pass from one result, the pass from another that shares a part with it raises. The part "
            "was retained for whoever comes next.",
            lambda case, seen: (
                ended(seen["passes"], _SHARED)[:2] == ["ok", _OVER] and _how(seen, _THREE, "ok", "ok", "ok", _OVER)
            ),
        ),
    ),
)
