"""The page about one student: each exercise with its outcome, its points and what the check says."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from course_utils.checks.show import MARKS
from course_utils.grading.outgoing import flagged
from course_utils.grading.outgoing.page import CLASSES, breaking, exercise, name, number, page, score
from course_utils.grading.submission import ExerciseResult, Result
from course_utils.inline import marked


def student_page(student: str, results: Sequence[Result]) -> str:
    """Return the page about one student's results."""
    body = [f"<h1>{name(student, len(student))}</h1>"]
    for result in results:
        body.append(f"<h2>{breaking(result.assignment)}</h2><p><strong>{score(result)}</strong> points.")
        if result.status != "graded":
            body.append(f" {marked(result.reason)}")
        body.append(
            f'</p><p class="small">Graded in {result.seconds:.1f} s from <code>{name(result.path, len(result.path))}'
            "</code></p>"
        )
        rows = "".join(_row(one) for one in result.exercises)
        body.append(f'<ol class="exercises">{rows}</ol>' if rows else "")
    return page(student, "".join(body))


def _row(result: ExerciseResult) -> str:
    said = "".join(f'<p class="said">{marked(text)}</p>' for text in (*result.messages, *result.withheld))
    ideas = "; ".join(escape(idea) for idea in result.misconceptions)
    if ideas:
        said += f'<p class="small">Recognised: {ideas}.</p>'
    said += flagged.resting(result)
    outcome = f"{MARKS.get(result.outcome, '')} {escape(result.outcome)}"
    points = f"{number(result.score)} of {number(result.points)}"
    return (
        f'<li class="{CLASSES.get(result.outcome, "none")}"><h3>{exercise(result.id)}</h3>'
        f'<p class="outcome">{outcome}, {points}</p>{said}</li>'
    )
