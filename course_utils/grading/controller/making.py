"""Making the cases of a lesson: done in the process that judges, once in each run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import count

import torch

from course_utils.checks.data import encode
from course_utils.checks.exercise import Exercise
from course_utils.checks.registry import exercises_of
from course_utils.grading.controller.posing import Posed, Question


def pose(lesson: str, seed: Callable[[int], int]) -> tuple[Posed, ...]:
    """Return the exercises of a lesson with new cases: none where it is no lesson.

    `seed(above)` returns a seed from 0 up to `above`, which nobody may guess.
    """
    return tuple(_posed(exercise, seed) for exercise in exercises_of(lesson))


def seeds(key: bytes) -> Callable[[int], int]:
    """Return a function that gives the next seed below a number. Who does not know the key can guess none."""
    numbers = count()

    def seed(above: int) -> int:
        drawn = hashlib.blake2b(next(numbers).to_bytes(8, "big"), key=key, digest_size=16).digest()
        return int.from_bytes(drawn, "big") % above

    return seed


def _posed(exercise: Exercise, seed: Callable[[int], int]) -> Posed:
    torch.manual_seed(seed(2**31))
    cases = tuple((case.name, encode(case.given)) for case in exercise.cases(seed(2**31)))
    question = Question(
        *(exercise.id, exercise.name, exercise.lesson, exercise.call, exercise.points),
        reaches=tuple(exercise.reaches),
        counted=exercise.counted,
    )
    return Posed(question, cases)
