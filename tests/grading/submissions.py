"""Submissions that tests hand in, and the mark of tests that run them."""

import pytest

from course_utils.checks.registry import LESSONS
from course_utils.grading.controller import machine
from course_utils.grading.submission import Cell, Submission

# Cells of lesson 00: a wrong answer to `slope`, and right ones to both exercises.
WRONG = "def slope(x):\n    return x * 0 - 1\n"
RIGHT = "first_gradient = 8\ndef slope(x):\n    return 3 * x.detach() ** 2\n"
HONEST = ["import torch\nfrom course_utils import check, hint", RIGHT, "check('slope', slope)"]

needs_a_sandbox = pytest.mark.skipif(machine.available() == "none", reason="this machine has no sandbox")


def submission(student: str, *sources: str, assignment: str = LESSONS[0]) -> Submission:
    """Return a submission of these cells."""
    cells = tuple(Cell(number, source) for number, source in enumerate(sources, 1))
    return Submission(student, assignment, f"{student}.ipynb", "digest", cells)
