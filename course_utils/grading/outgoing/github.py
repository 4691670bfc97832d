"""What a workflow of GitHub Actions shows of results: a summary page, and the form that autograding reporters read."""

from __future__ import annotations

import base64
import html
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from course_utils.grading.errors import GradingError
from course_utils.grading.intake.identity import shown, shown_lines
from course_utils.grading.submission import ExerciseResult, Result, within

_STATUS = {"correct": "pass", "error": "error"}


class GithubError(GradingError):
    """This is no step of a workflow, or its files cannot be written. The message says which."""


def summary(results: Sequence[Result]) -> str:
    """Return a page for a job's summary: a table for each submission, in HTML without a blank line in a table.

    So nothing in it is read as Markdown, and texts that come from learners are escaped, as is what does not print.
    """
    parts = []
    for result in results:
        title = f"{_text(result.student)}, {_text(result.assignment)}: {result.score:g} of {result.points:g} points"
        parts.append(f"<h3>{title}</h3>\n\n")
        if result.reason:
            parts.append(f"<p>{_text(result.status)}. {_text(result.reason)}</p>\n\n")
        rows = "\n".join(_row(exercise) for exercise in result.exercises)
        parts.append(
            f"<table>\n<tr><th>exercise</th><th>outcome</th><th>score</th><th></th></tr>\n{rows}\n</table>\n\n"
        )
    return "".join(parts)


def payload(results: Sequence[Result]) -> str:
    """Return results as autograding reporters read them: base64 of `{version, status, max_score, tests}`.

    The form is that of classroom-resources/autograding-grading-reporter, version 1. `max_score` is of all tests, and
    each test has `name`, `status` (pass, fail or error), `score`, `message`, `test_code`, `filename`, `line_no` and
    `execution_time`. What does not print in a message is escaped, as reporters print it into a job's log.
    """
    tests = [
        {
            "name": exercise.id if len(results) == 1 else f"{result.student}: {exercise.id}",
            "status": _STATUS.get(exercise.outcome, "fail"),
            "score": within(exercise.score, exercise.points),
            "message": shown_lines("\n".join(exercise.messages)) or None,
            "test_code": f'check("{exercise.id}", {exercise.id})',
            "filename": result.path,
            "line_no": 0,
            "execution_time": exercise.seconds,
        }
        for result in results
        for exercise in result.exercises
    ]
    statuses = {test["status"] for test in tests}
    status = "error" if not tests or "error" in statuses else "fail" if "fail" in statuses else "pass"
    whole = {"version": 1, "status": status, "max_score": sum(result.points for result in results), "tests": tests}
    return base64.b64encode(msgspec.json.encode(whole)).decode()


def notices(results: Sequence[Result]) -> str:
    """Return the two lines by which a job tells its points to whoever reads the annotations of a run."""
    total, most = sum(one.score for one in results), sum(one.points for one in results)
    report = msgspec.json.encode({"totalPoints": total, "maxPoints": most}).decode()
    return (
        f"::notice title=Autograding complete::Points {total:g}/{most:g}\n::notice title=Autograding report::{report}"
    )


def write_step(results: Sequence[Result], environment: Mapping[str, str] = os.environ) -> None:
    """Append the summary and `result=` with the payload to the files that GitHub named to this step.

    Raises GithubError where no file is named or one cannot be written.
    """
    for name, text in (("GITHUB_STEP_SUMMARY", summary(results)), ("GITHUB_OUTPUT", f"result={payload(results)}\n")):
        if not environment.get(name):
            raise GithubError(f"{name} is not set: --github belongs into a step of a workflow of GitHub Actions")
        try:
            with Path(environment[name]).open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise GithubError(f"{environment[name]}: cannot be written: {error.strerror}") from error


def _row(exercise: ExerciseResult) -> str:
    cells = (exercise.id, exercise.outcome, f"{exercise.score:g} of {exercise.points:g}", "\n".join(exercise.messages))
    return f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in cells)}</tr>"


def _text(text: str) -> str:
    return "<br>".join(html.escape(shown(line)) for line in text.splitlines() if line.strip())
