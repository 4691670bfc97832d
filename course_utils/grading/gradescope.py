"""The program that grades in Gradescope's container: one submission, and the result in a file."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from course_utils.checks.registry import LESSONS
from course_utils.grading.controller import machine
from course_utils.grading.controller.pool import grade_all
from course_utils.grading.intake.finding import SubmissionError, find
from course_utils.grading.outgoing.autograder import SETTINGS, Settings
from course_utils.grading.outgoing.export import replace_file
from course_utils.grading.outgoing.gradescope import refused, told
from course_utils.grading.submission import Submission


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
    except machine.NoSandbox as error:
        content = refused(lesson, f"Nothing was graded, through no fault of yours. Tell your teacher: {error}")
    except Exception as error:
        message = f"The grader failed, through no fault of yours. Tell your teacher: {type(error).__name__}: {error}"
        content = refused(lesson, message)
    content["execution_time"] = round(time.monotonic() - began, 2)
    (root / "results").mkdir(exist_ok=True)
    replace_file(root / "results" / "results.json", msgspec.json.format(msgspec.json.encode(content), indent=2))


def grade(folder: Path, settings: Settings) -> dict[str, Any]:
    """Return the content of results.json for what was handed in. Raises NoSandbox."""
    chosen = _handed_in(folder, settings.lesson)
    if isinstance(chosen, str):
        return refused(settings.lesson, chosen)
    unsafe = settings.unsafe and machine.available() == "none"
    (result,) = grade_all([chosen], unsafe=unsafe)
    return told(result)


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


if __name__ == "__main__":
    os.umask(0o022)
    main(Path(sys.argv[1]))
