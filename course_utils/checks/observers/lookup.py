"""Finding the function that runs the answers to an exercise."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from course_utils.checks.data import Case, Observation, plain

Observer = Callable[[object, Case], Observation]


def observer_of(lesson: str, exercise: str) -> Observer:
    """Return what runs the learner's code for an exercise; `value` where the answer is no function to run."""
    name = f"{home_of(lesson)}.{exercise}"
    if find_spec(name) is None:
        return value
    observer: Observer = import_module(name).observe
    return observer


def value(answer: object, case: Case) -> Observation:
    """Observe an answer that is a value: the value itself."""
    return {"value": plain(answer)}


def load(lesson: str) -> bool:
    """Import all observers of a lesson, and return whether any was new. Of a lesson that is none, nothing is loaded."""
    if find_spec(home_of(lesson)) is None:
        return False
    home = import_module(home_of(lesson))
    names = [module.name for module in pkgutil.iter_modules(home.__path__, f"{home.__name__}.")]
    known = set(sys.modules)
    for name in names:
        import_module(name)
    return not known.issuperset(names)


def loaded() -> dict[tuple[str, str], Observer]:
    """Return the observers that are imported already, by lesson and exercise."""
    prefix = f"{__package__}.lesson_"
    found = {}
    for name, module in sys.modules.items():
        lesson, _, exercise = name.removeprefix(prefix).partition(".")
        if name.startswith(prefix) and exercise and hasattr(module, "observe"):
            found[lesson, exercise] = module.observe
    return found


def home_of(lesson: str) -> str:
    """Return the name of the package that holds a lesson's observers."""
    return f"{__package__}.lesson_{lesson}"
