"""All exercises of the course, by id."""

from __future__ import annotations

import difflib
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from course_utils.checks.exercise import Exercise
    from course_utils.checks.observers.lookup import Observer

# In the order of the course. Each has a folder of its name in observers/, scenes/ and judges/.
LESSONS = (
    "00_start_here",
    "01_graph_structure",
    "02_how_backward_works",
    "03_graph_freeing",
    "04_retain_graph",
    "05_higher_order_gradients",
    "06_detach_vs_no_grad",
    "07_gradient_accumulation",
    "08_intermediate_gradients",
    "09_practical_checklist",
    "10_custom_functions",
    "11_build_your_own",
)


@cache
def lessons_by_exercise() -> dict[str, str]:
    """Return the lesson of every exercise, by its id, in the order of the course. This needs no PyTorch."""
    found: dict[str, str] = {}
    for lesson in LESSONS:
        for name in import_module(home_of(lesson)).ORDER:
            if name in found:
                raise ValueError(f"two exercises are called {name!r}")
            found[name] = lesson
    return found


@cache
def exercises() -> dict[str, Exercise]:
    """Return every exercise, in the order of the course."""
    return {exercise.id: exercise for lesson in LESSONS for exercise in exercises_of(lesson)}


def exercises_of(lesson: str) -> list[Exercise]:
    """Return the exercises of a lesson, in order: none where it is no lesson. Those of other lessons are not loaded."""
    names = [name for name, home in lessons_by_exercise().items() if home == lesson]
    return [import_module(f"{home_of(lesson)}.{name}").EXERCISE for name in names]


def exercise_called(name: str) -> Exercise:
    """Return one exercise. Raises TypeError for what is no text, and UnknownExercise with the nearest ids."""
    if not isinstance(name, str):
        raise TypeError(
            f'an exercise is named by text, as in check("walk", walk); this is of type {type(name).__name__}'
        )
    if name not in exercises():
        near = difflib.get_close_matches(name, exercises(), n=3, cutoff=0.6)
        advice = f"Did you mean {' or '.join(repr(item) for item in near)}?" if near else "progress() lists them all."
        raise UnknownExercise(f"no exercise is called {name!r}. {advice}")
    return exercises()[name]


def observer_for(exercise: Exercise) -> Observer:
    """Return the function that runs the learner's code for this exercise."""
    from course_utils.checks.observers.lookup import observer_of

    return observer_of(exercise.lesson, exercise.id)


def home_of(lesson: str) -> str:
    """Return the package that holds a lesson's judges."""
    return f"course_utils.checks.judges.lesson_{lesson}"


class UnknownExercise(LookupError):
    """No exercise has that name."""
