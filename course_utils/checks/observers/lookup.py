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


def loaded(lesson: str) -> dict[str, Observer]:
    """Return the observers of a lesson that are imported already, by exercise."""
    prefix = f"{home_of(lesson)}."
    found = {name.removeprefix(prefix): module for name, module in sys.modules.items() if name.startswith(prefix)}
    return {name: module.observe for name, module in found.items() if hasattr(module, "observe")}


def home_of(lesson: str) -> str:
    """Return the name of the package that holds a lesson's observers."""
    return f"{__package__}.lesson_{lesson}"
