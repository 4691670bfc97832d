"""Running an engine in stage 4, `retain_graph`."""

from __future__ import annotations

from typing import Any

from course_utils.checks.data import Observation
from course_utils.checks.observers.lesson_11_build_your_own import backward, record, save_and_free
from course_utils.checks.observers.lesson_11_build_your_own.engines import Engine, Look, attempt, observer
from course_utils.checks.observers.lesson_11_build_your_own.memory import counting, large
from course_utils.checks.observers.lesson_11_build_your_own.save_and_free import passes_over
from course_utils.checks.scenes.lesson_11_build_your_own.kept import KEPT
from course_utils.checks.scenes.lesson_11_build_your_own.passes import WITH

PARTS = (*backward.PARTS, "t.backward(retain_graph)")


def _kept(engine: Engine, name: str) -> Observation:
    x, c = large(engine)
    with counting() as alive:
        result = KEPT[name](x, c)
        seen: Observation = {"forward": alive()}
        result.backward(retain_graph=True)
        x.grad = None  # type: ignore[attr-defined]
        seen["retained"] = alive()
        result.backward()
        x.grad = None  # type: ignore[attr-defined]
        seen["after"] = alive()
        del result
    with counting() as alive:
        result = KEPT[name](x, c)
        result.backward(retain_graph=True)
        del result
        x.grad = None  # type: ignore[attr-defined]
        seen["dropped"] = alive()
    return seen


def look(engine: Engine, given: dict[str, Any]) -> Observation:
    return {
        "kept": {name: attempt(lambda n=name: _kept(engine, n)) for name in KEPT},  # type: ignore[misc]
        "passes": {name: attempt(lambda s=scene: passes_over(engine, s)) for name, scene in WITH.items()},  # type: ignore[misc]
    }


LOOK = Look(PARTS, look)
observe = observer(record=record.LOOK, backward=backward.LOOK, save_and_free=save_and_free.LOOK, retain_graph=LOOK)
