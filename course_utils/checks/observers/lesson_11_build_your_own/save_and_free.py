"""Running an engine in stage 3, `save_and_free`."""

from __future__ import annotations

import gc
from typing import Any

from course_utils.checks.data import Observation, Raised
from course_utils.checks.observers.lesson_11_build_your_own import backward, record
from course_utils.checks.observers.lesson_11_build_your_own.engines import Engine, Look, attempt, numbers, observer
from course_utils.checks.observers.lesson_11_build_your_own.memory import counting, large
from course_utils.checks.scenes.lesson_11_build_your_own.kept import KEPT
from course_utils.checks.scenes.lesson_11_build_your_own.passes import NUMBERS, WITHOUT, Passes, run_pass


def passes_over(engine: Engine, scene: Passes) -> list[Any]:
    """Return for each pass the gradient of the leaf, cleared before, or what was raised."""
    x = engine.tensor(NUMBERS, requires_grad=True)
    results = scene.build(x)
    seen = []
    for name, retain in scene.passes:
        x.grad = None
        ended = attempt(lambda name=name, retain=retain: run_pass(results[name], retain, engine.tensor))  # type: ignore[misc]
        seen.append(ended if isinstance(ended, Raised) else numbers(x.grad))
    return seen


def _kept(engine: Engine, name: str) -> Observation:
    x, c = large(engine)
    with counting() as alive:
        result = KEPT[name](x, c)
        seen: Observation = {"forward": alive()}
        result.backward()
        x.grad = None  # type: ignore[attr-defined]
        seen["after"] = alive()
        del result
    with counting() as alive:
        result = KEPT[name](x, c)
        del result
        seen["dropped"] = alive()
    return seen


def _gone(engine: Engine, passing: bool) -> float:
    """Return how many arrays are alive when a leaf and its graph are deleted, circles of references collected."""
    with counting() as alive:
        x, _ = large(engine)
        result = (x.exp() * x).sum()  # type: ignore[attr-defined]
        if passing:
            result.backward()
        del x, _, result
        gc.collect(0)
        return alive()


def _value(engine: Engine) -> list[float]:
    held = engine.tensor([1.0, 2.0], requires_grad=True) + 0.5
    (held * held).sum().backward()
    return [float(number) for number in held.numpy()]


def look(engine: Engine, given: dict[str, Any]) -> Observation:
    return {
        "value": attempt(lambda: _value(engine)),
        "gone": [attempt(lambda p=passing: _gone(engine, p)) for passing in (False, True)],  # type: ignore[misc]
        "kept": {name: attempt(lambda n=name: _kept(engine, n)) for name in KEPT},  # type: ignore[misc]
        "passes": {name: attempt(lambda s=scene: passes_over(engine, s)) for name, scene in WITHOUT.items()},  # type: ignore[misc]
    }


LOOK = Look(backward.PARTS, look)
observe = observer(record=record.LOOK, backward=backward.LOOK, save_and_free=LOOK)
