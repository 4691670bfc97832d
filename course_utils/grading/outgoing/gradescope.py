"""A result in the form that Gradescope's pages show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course_utils.checks.registry import exercises_of
from course_utils.grading.intake.identity import shown_lines
from course_utils.grading.submission import Result, within


def told(result: Result) -> dict[str, Any]:
    """Return a result in Gradescope's form. All texts are plain ones: what learners wrote is never shown as HTML.

    What does not print is escaped.

    https://gradescope-autograders.readthedocs.io/en/latest/specs/ has the form.
    """
    tests = [
        _test(
            exercise.id,
            exercise.outcome == "correct",
            within(exercise.score, exercise.points),
            exercise.points,
            "\n".join((exercise.outcome, *exercise.messages)),
        )
        for exercise in result.exercises
    ]
    return _content(tests, result.reason or f"{result.score:g} of {result.points:g} points")


def refused(lesson: str, reason: str) -> dict[str, Any]:
    """Return a content with score 0 that says why nothing was graded."""
    tests = [_test(one.id, False, 0.0, float(one.points), "not graded") for one in exercises_of(lesson)]
    return _content(tests, reason)


def _content(tests: Sequence[dict[str, Any]], output: str) -> dict[str, Any]:
    return {
        "score": sum(test["score"] for test in tests),
        "output": shown_lines(output),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": list(tests),
    }


def _test(name: str, passed: bool, score: float, points: float, output: str) -> dict[str, Any]:
    return {
        "name": name,
        "status": "passed" if passed else "failed",
        "score": score,
        "max_score": points,
        "output": shown_lines(output),
        "output_format": "text",
        "visibility": "visible",
    }
