"""Flags: sentences that ask a teacher to look at an answer. They stand beside the score and change none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from course_utils.checks.exercise import Exercise
from course_utils.grading.controller.reaching import TOO_LONG, look
from course_utils.grading.submission import Result, Submission

MAX_NAMED = 6  # of what a cell reaches for
MAX_NAME = 60  # characters of each

_REACHES = "Cell {} uses {}. By such names an answer can change what is observed of it. Read the cell."
_UNREAD = "Cell {} was not looked at: the notebook has more code than that. Read it."
_FAILED = "The look at the cells failed ({}). Read them."


def with_flags(result: Result, submission: Submission, exercises: Sequence[Exercise]) -> Result:
    """Return the result with a flag for each cell that reaches for machinery which no answer needs. Raises nothing.

    A cell that defines answers is flagged at these, and a name is none that all of them list as `reaches`. Any other
    cell is flagged at every exercise that was attempted, by the names that no exercise of the lesson lists.
    """
    try:
        flags = _flags(submission, exercises)
    except Exception as error:  # the answers are graded whatever is thought of them
        flags = {exercise.id: [_FAILED.format(type(error).__name__)] for exercise in exercises}
    rows = tuple(
        row if row.outcome == "not attempted" else msgspec.structs.replace(row, flags=(*row.flags, *flags[row.id]))
        for row in result.exercises
    )
    return msgspec.structs.replace(result, exercises=rows)


def _flags(submission: Submission, exercises: Sequence[Exercise]) -> dict[str, list[str]]:
    flags: dict[str, list[str]] = {exercise.id: [] for exercise in exercises}
    looked = look([cell.source for cell in submission.cells])
    for cell, found in zip(submission.cells, looked, strict=True):
        answered = [exercise for exercise in exercises if exercise.name in found.binds]
        if answered:
            free = frozenset[str].intersection(*(frozenset(exercise.reaches) for exercise in answered))
        else:
            free = frozenset(name for exercise in exercises for name in exercise.reaches)
        reaches = found.reaches - free
        if reaches:
            sentence = _UNREAD.format(cell.number) if TOO_LONG in reaches else _said(cell.number, sorted(reaches))
            for exercise in answered or exercises:
                flags[exercise.id].append(sentence)
    return flags


def _said(number: int, names: Iterable[str]) -> str:
    marked = [f"`{name if len(name) <= MAX_NAME else name[:MAX_NAME] + '...'}`" for name in names]
    if len(marked) > MAX_NAMED:
        marked[MAX_NAMED:] = [f"{len(marked) - MAX_NAMED} more"]
    *others, last = marked
    return _REACHES.format(number, f"{', '.join(others)} and {last}" if others else last)
