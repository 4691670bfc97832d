"""What a report says about how far points hold: answers that a person should look at, and what was only observed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape

from course_utils.grading.submission import ExerciseResult, Result
from course_utils.inline import marked

HEADING = "<h2>Answers to look at</h2><p>No score was changed for these.</p>"
CAPTION = "Answers that a person should look at"
HEADS = ("Student", "Assignment", "Exercises", "Why")
SENTENCES = 5  # of each submission; the JSON has all


def rows(results: Iterable[Result], link: Callable[[str], str]) -> list[list[str]]:
    """Return a row of HTML cells for each submission with flags. `link` makes a link to a student's page."""
    found = []
    for result in results:
        if result.flags:
            why = "".join(f'<p class="said">{marked(text)}</p>' for text in result.flags[:SENTENCES])
            names = ", ".join(f"<code>{escape(row.id)}</code>" for row in result.exercises if row.flags)
            found.append([link(result.student), escape(result.assignment), names, why])
    return found


def resting(exercise: ExerciseResult) -> str:
    """Return a sentence in HTML on what an exercise's points rest on that no number proves; none where that is none."""
    if not exercise.score or not exercise.observed:
        return ""
    names = ", ".join(escape(name) for name in exercise.observed)
    return f'<p class="small">These points rest also on what was observed while the answer ran: {names}.</p>'
