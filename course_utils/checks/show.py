"""A verdict as a reader meets it: HTML in a notebook, text elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from course_utils.checks.exercise import Exercise, Verdict
from course_utils.inline import marked

MARKS = {"correct": "✔", "incorrect": "✘", "error": "✘", "not attempted": "○"}
# Each outcome has a mark and a word, so colour is never the only sign. Only borders are coloured, for any theme.
_COLOURS = {"correct": "#009E73", "incorrect": "#D55E00", "error": "#D55E00", "not attempted": "#767676"}


@dataclass(frozen=True)
class Shown:
    """Something to display: HTML where it can be shown, text everywhere."""

    text: str
    html: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.text, "text/html": self.html}


def shown(exercise: Exercise, verdict: Verdict, left: int = 0) -> Shown:
    """Lay out a verdict. What it withholds is shown where no more different answers are `left` to be given first."""
    title = f"{exercise.id}: {verdict.outcome}"
    told = (*verdict.messages, *(_ahead(left) if left else verdict.withheld))
    notes = _notes(exercise, verdict)
    lines = [f"{MARKS[verdict.outcome]} {title}"]
    lines += [_indent(text) for text in (*told, *notes)]
    return Shown("\n".join(lines), box(_COLOURS[verdict.outcome], lines[0], told, notes))


def _ahead(left: int) -> tuple[str, ...]:
    answers = "one more different answer" if left == 1 else f"{left} more different answers"
    return (f"Which of them are wrong is said after {answers}. Find the doubtful ones by running them.",)


def box(colour: str, title: str, messages: tuple[str, ...], notes: tuple[str, ...]) -> str:
    """Return a bordered HTML box. All texts are escaped: they may quote learner code."""
    paragraphs = "".join(f'<p style="margin:0.3em 0;white-space:pre-wrap">{marked(text)}</p>' for text in messages)
    small = "".join(f'<p style="margin:0.3em 0;opacity:0.85;white-space:pre-wrap">{marked(text)}</p>' for text in notes)
    return (
        f'<div role="status" style="border-left:0.4em solid {colour};padding:0.2em 0.8em;margin:0.3em 0">'
        f"<strong>{escape(title)}</strong>{paragraphs}{small}</div>"
    )


def _notes(exercise: Exercise, verdict: Verdict) -> tuple[str, ...]:
    notes = [f"Warning while your code ran: {text}" for text in verdict.warnings]
    if verdict.outcome == "correct":
        notes = [f"{exercise.points} of {exercise.points} points.", *verdict.debrief, *notes]
    elif verdict.outcome != "not attempted":
        notes.append(f'Stuck? hint("{exercise.id}") gives the next hint.')
    return tuple(notes)


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
