"""What is asked of everybody: the exercises of a lesson, with cases that are new and secret in each run."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

import torch

from course_utils.checks.data import encode
from course_utils.checks.exercise import Exercise
from course_utils.checks.registry import exercises_of


@dataclass(frozen=True)
class Posed:
    """An exercise with the cases of this run, encoded: made once, and the same for everybody."""

    exercise: Exercise
    cases: tuple[tuple[str, bytes], ...]


def pose(lesson: str, seed: Callable[[int], int] = secrets.randbelow) -> tuple[Posed, ...]:
    """Return the exercises of a lesson with new cases: none where it is no lesson.

    `seed(above)` returns a seed from 0 up to `above`, which nobody may guess.
    """
    return tuple(_posed(exercise, seed) for exercise in exercises_of(lesson))


def _posed(exercise: Exercise, seed: Callable[[int], int]) -> Posed:
    torch.manual_seed(seed(2**31))
    return Posed(exercise, tuple((case.name, encode(case.given)) for case in exercise.cases(seed(2**31))))
