"""Ways through the course: which lessons in which order, how long they take, and how much of that is left."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from course_utils.checks.registry import LESSONS, exercises_of, home_of

if TYPE_CHECKING:
    from course_utils.checks.exercise import Exercise

# What each lesson's header says, in minutes; a test compares. An installed course need not have the notebooks.
READING = {
    "00_start_here": 30,
    "01_graph_structure": 35,
    "02_how_backward_works": 30,
    "03_graph_freeing": 25,
    "04_retain_graph": 35,
    "05_higher_order_gradients": 30,
    "06_detach_vs_no_grad": 30,
    "07_gradient_accumulation": 35,
    "08_intermediate_gradients": 40,
    "09_practical_checklist": 40,
    "10_custom_functions": 40,
    "11_build_your_own": 40,
}


@dataclass(frozen=True)
class Route:
    """A way through the course: its name, for whom it is, and its lessons in order."""

    name: str
    purpose: str
    lessons: tuple[str, ...]


def _route(name: str, purpose: str, numbers: str) -> Route:
    return Route(name, purpose, tuple(next(it for it in LESSONS if it[:2] == number) for number in numbers.split()))


ROUTES = {
    route.name: route
    for route in (
        _route("all", "autograd from the ground, all lessons in order", "00 01 02 03 04 05 06 07 08 09 10"),
        _route("train", "I train models and do not want to be fooled", "00 01 02 07 06 03 09"),
        _route("project", "build my own autograd", "11"),
    )
}


def core_of(lesson: str) -> list[Exercise]:
    """Return the exercises that a lesson's turns name, in order; those that its `FURTHER` lists are left out."""
    apart = getattr(import_module(home_of(lesson)), "FURTHER", ())
    return [exercise for exercise in exercises_of(lesson) if exercise.id not in apart]


def minutes_of(lesson: str, solved: Container[str] = ()) -> int:
    """Return the minutes that a lesson's core takes, its unsolved exercises with it.

    Reading counts until one of its exercises is solved, for then the lesson has been read.
    """
    core = core_of(lesson)
    left = [exercise.minutes for exercise in core if exercise.id not in solved]
    return sum(left) + (READING[lesson] if len(left) == len(core) else 0)


def next_on(route: Route, solved: Container[str]) -> Exercise | None:
    """Return the first exercise of a route that is not solved; None where all are."""
    for lesson in route.lessons:
        for exercise in core_of(lesson):
            if exercise.id not in solved:
                return exercise
    return None


def route_called(name: str) -> Route:
    """Return a route by its name. Raises ValueError for another name."""
    if name not in ROUTES:
        names = ", ".join(repr(known) for known in ROUTES)
        raise ValueError(f"there is no route {name!r}; the routes are {names}")
    return ROUTES[name]
