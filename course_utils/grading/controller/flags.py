"""Flags: sentences that ask a teacher to look at an answer. They stand beside the score and change none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from course_utils.grading.controller.orders import UNSEEN
from course_utils.grading.controller.posing import Question
from course_utils.grading.controller.reaching import TOO_LONG, Looked, look

MAX_NAMED = 6  # of what a cell reaches for
MAX_NAME = 60  # characters of each

_REACHES = "Cell {} uses {}. By such names an answer can change what is observed of it. Read the cell."
_UNREAD = "Cell {} was not looked at: the notebook has more code than that. Read it."


def flags_of(cells: Sequence[tuple[int, str]], exercises: Sequence[Question]) -> dict[str, tuple[str, ...]]:
    """Return for each exercise a flag for each cell that reaches for machinery which no answer needs. Raises nothing.

    A cell that defines answers is flagged at these, and a name is none that all of them list as `reaches`. Any other
    cell is flagged at every exercise, by the names that no exercise of the lesson lists. What takes numbers out of
    PyTorch is named where an exercise has operations counted, in the cells that its answer uses.
    """
    try:
        flags = _flags(cells, exercises)
    except Exception as error:  # the answers are graded whatever is thought of them
        flags = {exercise.id: [UNSEEN.format(type(error).__name__)] for exercise in exercises}
    return {name: tuple(sentences) for name, sentences in flags.items()}


def _flags(cells: Sequence[tuple[int, str]], exercises: Sequence[Question]) -> dict[str, list[str]]:
    flags: dict[str, list[str]] = {exercise.id: [] for exercise in exercises}
    looked = look([source for _, source in cells])
    needed = {exercise.id: _needed(exercise.name, looked) for exercise in exercises if exercise.counted}
    for place, ((number, _), found) in enumerate(zip(cells, looked, strict=True)):
        answered = [exercise for exercise in exercises if exercise.name in found.binds]
        if answered:
            free = frozenset[str].intersection(*(frozenset(exercise.reaches) for exercise in answered))
        else:
            free = frozenset(name for exercise in exercises for name in exercise.reaches)
        reaches = found.reaches - free
        for exercise in exercises:
            beside = found.beside - free if place in needed.get(exercise.id, ()) else frozenset()
            named = beside | (reaches if exercise in (answered or exercises) else frozenset())
            if named:
                unread = TOO_LONG in named
                flags[exercise.id].append(_UNREAD.format(number) if unread else _said(number, sorted(named)))
    return flags


def _needed(name: str, looked: Sequence[Looked]) -> set[int]:
    """Return the places of the cells that bind a name, or what these use, and so on. Each is looked at once."""
    binding: dict[str, list[int]] = {}
    for place, found in enumerate(looked):
        for bound in found.binds:
            binding.setdefault(bound, []).append(place)
    needed: set[int] = set()
    waiting = [name]
    while waiting:
        for place in binding.pop(waiting.pop(), ()):
            if place not in needed:
                needed.add(place)
                waiting += looked[place].uses
    return needed


def _said(number: int, names: Iterable[str]) -> str:
    marked = [f"`{name if len(name) <= MAX_NAME else name[:MAX_NAME] + '...'}`" for name in names]
    if len(marked) > MAX_NAMED:
        marked[MAX_NAMED:] = [f"{len(marked) - MAX_NAMED} more"]
    *others, last = marked
    return _REACHES.format(number, f"{', '.join(others)} and {last}" if others else last)
