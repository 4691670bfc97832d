"""Running an engine in stage 8, `retain_grad_and_hooks`."""

from __future__ import annotations

from typing import Any

from course_utils.checks.data import Observation, type_name
from course_utils.checks.observers.lesson_11_build_your_own import backward, record
from course_utils.checks.observers.lesson_11_build_your_own.engines import Engine, Look, attempt, numbers, observer
from course_utils.checks.scenes.lesson_11_build_your_own.watched import NUMBERS, WATCHED, Watched

PARTS = (*backward.PARTS, "t.retain_grad()", "t.register_hook()")


def _watched(engine: Engine, scene: Watched) -> Observation:
    noted: list[list[Any]] = []
    arrays: list[str] = []
    x = engine.tensor(NUMBERS, requires_grad=True)

    def note(name: str, g: Any) -> None:
        noted.append([name, numbers(g)])
        if not hasattr(g, "requires_grad"):
            arrays.append(name)

    found = scene(x, note)
    return {"noted": noted, "found": {name: numbers(tensor) for name, tensor in found.items()}, "arrays": arrays}


def _handle(engine: Engine) -> bool | str:
    """Return whether register_hook gives a handle; if not, the name of the type of what it gives."""
    handle = engine.tensor(NUMBERS, requires_grad=True).register_hook(lambda g: None)
    return hasattr(handle, "remove") or type_name(handle)


def _asked(engine: Engine) -> Any:
    """Return what `engine.grad` of stage 5 gives where a hook doubles; None for an engine without it."""
    if not hasattr(engine, "grad"):
        return None
    x = engine.tensor(NUMBERS, requires_grad=True)
    h = x * 3.0
    h.register_hook(lambda g: g * 2.0)
    return numbers(engine.grad(h.sum(), [x])[0])


def look(engine: Engine, given: dict[str, Any]) -> Observation:
    seen = {name: attempt(lambda s=scene: _watched(engine, s)) for name, scene in WATCHED.items()}  # type: ignore[misc]
    return {**seen, "handle": attempt(lambda: _handle(engine)), "asked": attempt(lambda: _asked(engine))}


LOOK = Look(PARTS, look)
observe = observer(record=record.LOOK, backward=backward.LOOK, retain_grad_and_hooks=LOOK)
