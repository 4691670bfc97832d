"""Flags: sentences that ask a teacher to look at an answer. They stand beside the score and change none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from course_utils.grading.controller.orders import UNSEEN
from course_utils.grading.controller.posing import Question
from course_utils.grading.controller.reaching import TOO_LONG, look

MAX_NAMED = 6  # of what a cell reaches for
MAX_NAME = 60  # characters of each

_REACHES = "Cell {} uses {}. By such names an answer can change what is observed of it. Read the cell."
_UNREAD = "Cell {} was not looked at: the notebook has more code than that. Read it."


def flags_of(cells: Sequence[tuple[int, str]], exercises: Sequence[Question]) -> dict[str, tuple[str, ...]]:
    """Return for each exercise a flag for each cell that reaches for machinery which no answer needs. Raises nothing.

    A cell that defines answers is flagged at these, and a name is none that all of them list as `reaches`. Any other
    cell is flagged at every exercise, by the names that no exercise of the lesson lists.
    """
    try:
        flags = _flags(cells, exercises)
    except Exception as error:  # the answers are graded whatever is thought of them
        flags = {exercise.id: [UNSEEN.format(type(error).__name__)] for exercise in exercises}
    return {name: tuple(sentences) for name, sentences in flags.items()}


def _flags(cells: Sequence[tuple[int, str]], exercises: Sequence[Question]) -> dict[str, list[str]]:
    flags: dict[str, list[str]] = {exercise.id: [] for exercise in exercises}
    looked = look([source for _, source in cells])
    for (number, _), found in zip(cells, looked, strict=True):
        answered = [exercise for exercise in exercises if exercise.name in found.binds]
        if answered:
            free = frozenset[str].intersection(*(frozenset(exercise.reaches) for exercise in answered))
        else:
            free = frozenset(name for exercise in exercises for name in exercise.reaches)
        reaches = found.reaches - free
        if reaches:
            sentence = _UNREAD.format(number) if TOO_LONG in reaches else _said(number, sorted(reaches))
            for exercise in answered or exercises:
                flags[exercise.id].append(sentence)
    return flags


def _said(number: int, names: Iterable[str]) -> str:
    marked = [f"`{name if len(name) <= MAX_NAME else name[:MAX_NAME] + '...'}`" for name in names]
    if len(marked) > MAX_NAMED:
        marked[MAX_NAMED:] = [f"{len(marked) - MAX_NAMED} more"]
    *others, last = marked
    return _REACHES.format(number, f"{', '.join(others)} and {last}" if others else last)
