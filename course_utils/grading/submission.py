"""What is graded and what comes out: submissions and their results, as plain data."""

from __future__ import annotations

from typing import Literal

import msgspec

Status = Literal["graded", "timeout", "memory", "crashed", "unreadable"]


class Cell(msgspec.Struct, frozen=True):
    """A code cell that the learner wrote. `number` counts the notebook's cells of all kinds, from 1.

    `grade_id` is the name that nbgrader, or somebody in its place, gave it: of a cell for an answer, the exercise's.
    """

    number: int
    source: str
    grade_id: str = ""


class Submission(msgspec.Struct, frozen=True):
    """One student's notebook for one assignment. `cells` are the learner's code cells, in order.

    `assignment` is the stem of a lesson's notebook, such as "02_how_backward_works". `digest` is the SHA-256 of the
    file, in hex. `unreadable` is a sentence where there are no cells because the file could not be read, else empty,
    and `detail` what the decoder said of it. `number` is the one that Canvas or Moodle wrote, empty where none did.
    """

    student: str
    assignment: str
    path: str
    digest: str
    cells: tuple[Cell, ...] = ()
    unreadable: str = ""
    number: str = ""
    detail: str = ""


def within(score: float, points: float) -> float:
    """Return a score that lies between 0 and the points, as every platform demands."""
    return min(max(score, 0.0), points)


class ExerciseResult(msgspec.Struct, frozen=True):
    """The verdict on one exercise. `score` and `points` are in points, `seconds` is wall time.

    `withheld` is for teachers: it names the wrong entries of a table, which would give the others away. `flags` are
    for teachers, too: sentences that say why a person should look at the answer. They change no score. `observed` names
    the entries of the observations that the verdict rests on and no number proves.
    """

    id: str
    outcome: str
    score: float
    points: float
    misconceptions: tuple[str, ...]
    messages: tuple[str, ...]
    seconds: float
    withheld: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    observed: tuple[str, ...] = ()


class Result(msgspec.Struct, frozen=True):
    """The result of one submission. `reason` says why, in a sentence, where `status` is not "graded".

    `number` and `detail` are the submission's. One that is to be tried `again` says nothing of the submission: a
    process ended before all was observed, or the machine had no room.
    """

    student: str
    assignment: str
    path: str
    status: Status
    score: float
    points: float
    seconds: float
    exercises: tuple[ExerciseResult, ...]
    reason: str = ""
    number: str = ""
    detail: str = ""
    again: bool = False

    @property
    def flags(self) -> tuple[str, ...]:
        """Why a person should look at it: the sentences of all exercises, each once."""
        return tuple(dict.fromkeys(flag for exercise in self.exercises for flag in exercise.flags))
