"""Gradescope: grading the one submission of a container, and telling the result in the form that its pages show."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from course_utils.checks.registry import LESSONS, exercises_of
from course_utils.grading import sandbox
from course_utils.grading.autograder import SETTINGS, Settings
from course_utils.grading.export import replace_file
from course_utils.grading.finding import SubmissionError, find
from course_utils.grading.parent import ParentFailed
from course_utils.grading.pool import grade_all
from course_utils.grading.submission import Result, Submission, within


def main(root: Path) -> None:
    """Grade `root`/submission as `root`/source/assignment.json says, and write `root`/results/results.json.

    The file is written whatever happens, with score 0 and a sentence where nothing could be graded.
    """
    began = time.monotonic()
    lesson = ""
    try:
        settings = msgspec.json.decode((root / "source" / SETTINGS).read_bytes(), type=Settings)
        lesson = settings.lesson
        content = grade(root / "submission", settings)
    except (sandbox.NoSandbox, ParentFailed) as error:
        content = refused(lesson, f"Nothing was graded, through no fault of yours. Tell your teacher: {error}")
    except Exception as error:
        message = f"The grader failed, through no fault of yours. Tell your teacher: {type(error).__name__}: {error}"
        content = refused(lesson, message)
    content["execution_time"] = round(time.monotonic() - began, 2)
    (root / "results").mkdir(exist_ok=True)
    replace_file(root / "results" / "results.json", msgspec.json.format(msgspec.json.encode(content), indent=2))


def grade(folder: Path, settings: Settings) -> dict[str, Any]:
    """Return the content of results.json for what was handed in. Raises NoSandbox and ParentFailed."""
    chosen = _handed_in(folder, settings.lesson)
    if isinstance(chosen, str):
        return refused(settings.lesson, chosen)
    unsafe = settings.unsafe and sandbox.available() == "none"
    (result,) = grade_all([chosen], unsafe=unsafe)
    return told(result)


def told(result: Result) -> dict[str, Any]:
    """Return a result in Gradescope's form. All texts are plain ones: what learners wrote is never shown as HTML.

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


def _handed_in(folder: Path, lesson: str) -> Submission | str:
    """Return the one notebook of the lesson, or a sentence that says why there is none."""
    wanted = f"Hand in one notebook, {lesson}.ipynb."
    try:
        found = find([folder])
    except SubmissionError as error:
        return f"{wanted} In what came, {str(error).removeprefix(f'{folder}: ')}"
    right = [one for one in found if one.assignment == lesson]
    if not right and len(found) == 1 and found[0].assignment not in LESSONS:
        right = found  # nobody can tell which lesson it is: it says itself why it cannot be read
    if len(right) > 1:
        return f"{wanted} You handed in {len(right)}: {', '.join(Path(one.path).name for one in right[:5])}."
    if not right:
        lessons = ", ".join(f"{Path(one.path).name} is of {one.assignment}" for one in found[:5])
        return f"{wanted} You handed in another: {lessons}."
    return msgspec.structs.replace(right[0], assignment=lesson)


def _content(tests: Sequence[dict[str, Any]], output: str) -> dict[str, Any]:
    return {
        "score": sum(test["score"] for test in tests),
        "output": output,
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
        "output": output,
        "output_format": "text",
        "visibility": "visible",
    }


if __name__ == "__main__":
    os.umask(0o022)
    main(Path(sys.argv[1]))
