"""Submissions that tests hand in, and the mark of tests that run them."""

import pytest

from course_utils.checks.registry import LESSONS, exercises_of, lessons_by_exercise
from course_utils.grading.controller import machine
from course_utils.grading.submission import Cell, Submission

# A right answer to each exercise that lesson 00 may have.
ANSWERS = {
    "first_gradient": "first_gradient = 8",
    "slope": "def slope(x):\n    return 3 * x.detach() ** 2",
    "order_the_step": "order_the_step = 'ECFBAD'",
}
# Cells of lesson 00: a wrong answer to `slope`, and right ones to all of its exercises.
WRONG = "def slope(x):\n    return x * 0 - 1\n"
RIGHT = "".join(f"{ANSWERS[name]}\n" for name, lesson in lessons_by_exercise().items() if lesson == LESSONS[0])
HONEST = ["import torch\nfrom course_utils import check, hint", RIGHT, "check('slope', slope)"]

needs_a_sandbox = pytest.mark.skipif(machine.available() == "none", reason="this machine has no sandbox")


def points_of(lesson: str = LESSONS[0]) -> dict[str, int]:
    """Return the points of each exercise of a lesson, in order. This needs PyTorch; what stands above does not."""
    return {exercise.id: exercise.points for exercise in exercises_of(lesson)}


def total_of(lesson: str = LESSONS[0]) -> int:
    """Return the points of a lesson."""
    return sum(points_of(lesson).values())


def submission(student: str, *sources: str, assignment: str = LESSONS[0]) -> Submission:
    """Return a submission of these cells."""
    cells = tuple(Cell(number, source) for number, source in enumerate(sources, 1))
    return Submission(student, assignment, f"{student}.ipynb", "digest", cells)
