"""The page about the whole class: outcomes, misconceptions and scores of each assignment, and every student's."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

from course_utils.checks.registry import LESSONS
from course_utils.grading.outgoing import flagged
from course_utils.grading.outgoing.page import (
    CLASSES,
    NAMED,
    bar,
    breaking,
    count,
    exercise,
    known_exercise,
    name,
    number,
    page,
    page_of,
    score,
    table,
)
from course_utils.grading.outgoing.summary import AssignmentSummary, MisconceptionSummary, summarise
from course_utils.grading.submission import Result
from course_utils.inline import marked

FIRST = 8  # misconceptions that are shown without unfolding
FEW = 10  # submissions whose scores are seen at a glance, without a distribution
MAX_REASON = 200  # characters of why a submission was not graded in full; its student's page has them all
MAX_FOLDED = 26  # characters of a name that leads to its row, where it stands longer
MAX_NAMES = 100  # students that are named at one place; `course grade --csv` has all
TALL = 20  # students that are shown at once: of more, a reader may choose

Mine = Mapping[str, Result]  # a student's results by assignment
# What a reader may choose to see of many students: the class of a row, and whether it is one, of a student who was to
# hand in so many assignments.
_CHOICES: Mapping[str, tuple[str, Callable[[Mine, int], bool]]] = {
    "with points missing": ("missing", lambda mine, of: any(it.score < it.points for it in mine.values())),
    "with under half of the points": ("half", lambda mine, of: 2 * _sum(mine, "score") < _sum(mine, "points")),
    "with an assignment missing": ("absent", lambda mine, of: len(mine) < of),
    "not graded in full": ("stopped", lambda mine, of: any(it.status != "graded" for it in mine.values())),
}


def class_page(results: Sequence[Result]) -> str:
    """Return the page about the whole class. It links to the pages of its students."""
    by_student: dict[str, dict[str, Result]] = defaultdict(dict)
    for result in results:
        by_student[result.student][result.assignment] = result
    rows = {student: index for index, student in enumerate(sorted(by_student))}
    summaries = [it for it in summarise(results) if it.scores is not None or it.assignment in LESSONS]
    links = [f'<li><a href="#{_anchor(it)}">{breaking(it.assignment)}</a></li>' for it in summaries]
    left = _not_in_full(results, rows)
    if left:
        links.append('<li><a href="#not-in-full">Not graded in full</a></li>')
    to_read = flagged.section(results, lambda students: _who(students, rows))
    if to_read:
        links.append(f'<li><a href="#{flagged.ANCHOR}">Answers to look at</a></li>')
    links.append('<li><a href="#students">Students</a></li>')
    body = [f"<h1>Class report</h1><p>{count(len(rows), 'student')}, {count(len(results), 'submission')}.</p>"]
    body.append(f'<nav aria-label="On this page"><ul>{"".join(links)}</ul></nav>')
    body += [_assignment(summary, rows) for summary in summaries]
    columns = [it.assignment for it in summaries]
    body += [left, to_read, _students({student: by_student[student] for student in rows}, columns)]
    return page("Class report", "".join(body))


def _assignment(summary: AssignmentSummary, rows: Mapping[str, int]) -> str:
    statuses = ", ".join(f"{number} {escape(status)}" for status, number in summary.statuses.items())
    parts = [f'<h2 id="{_anchor(summary)}">{breaking(summary.assignment)}</h2>']
    parts.append(f"<p>{count(summary.total, 'submission')}: {statuses}.")
    if summary.scores is not None:
        mean, median, points = map(number, (summary.scores.mean, summary.scores.median, summary.points))
        parts.append(f" Of those that could be read, the mean score is {mean} and the median {median} of {points}.")
    if summary.seconds is not None:
        parts.append(
            f" Grading took {summary.seconds.median:.2f} s in the median, {summary.seconds.largest:.2f} s at most."
        )
    parts.append("</p>")
    if summary.exercises:
        parts.append(_outcomes(summary))
        parts.append(_misconceptions(summary.misconceptions, rows))
    if sum(summary.bins) >= FEW:
        parts.append(_distribution(summary.assignment, summary.bins))
    return "".join(parts)


def _outcomes(summary: AssignmentSummary) -> str:
    rows = []
    for one in summary.exercises:
        shares = [(kind, one.outcomes.get(outcome, 0) / one.total) for outcome, kind in CLASSES.items()]
        counts = [str(one.outcomes.get(outcome, 0)) for outcome in CLASSES]
        rows.append([exercise(one.id) + bar(shares), *counts])
    keys = [
        f'<span class="bar key" aria-hidden="true"><span class="{kind}"></span></span>{outcome}'
        for outcome, kind in CLASSES.items()
    ]
    caption = f"Submissions of {summary.assignment} by outcome"
    return "<h3>Outcomes</h3>" + table(caption, ("Exercise", *keys), rows, "outcomes", [""] * len(rows))


def _misconceptions(found: Sequence[MisconceptionSummary], rows: Mapping[str, int]) -> str:
    if not found:
        return "<h3>Misconceptions</h3><p>No known misconception was recognised.</p>"
    items = []
    for one in found:
        sentence = _sentence(one)
        items.append(
            f"<li><strong>{escape(one.name)}</strong>, {count(len(one.students), 'student')} "
            f"in <code>{escape(one.exercise)}</code>{sentence}{_who(one.students, rows)}</li>"
        )
    listed = f'<ul class="found">{"".join(items[:FIRST])}</ul>'
    if len(items) > FIRST:
        rest = f'<ul class="found">{"".join(items[FIRST:])}</ul>'
        listed += f"<details><summary>Show {len(items) - FIRST} more</summary>{rest}</details>"
    return f"<h3>Misconceptions, the most frequent first</h3>{listed}"


def _sentence(one: MisconceptionSummary) -> str:
    known = known_exercise(one.exercise)
    said = [it.message for it in known.misconceptions if it.name == one.name] if known else []
    return f'<p class="said small">{marked(said[0])}</p>' if said else ""


def _distribution(assignment: str, bins: Sequence[int]) -> str:
    rows = []
    for index, submissions in enumerate(bins):
        last = 100 if index == len(bins) - 1 else 10 * index + 9
        rows.append([f"{10 * index} to {last} %", str(submissions), bar([("count", submissions / max(bins))])])
    heads = ("Share of the points", "Submissions", "Chart")
    caption = f"Submissions of {assignment} by score"
    return "<h3>Distribution of scores</h3>" + table(caption, heads, rows, "bins", [""] * len(rows))


def _not_in_full(results: Iterable[Result], rows: Mapping[str, int]) -> str:
    """List what was stopped or could not be read, those of one assignment and for one reason together."""
    why: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for it in results:
        if it.status != "graded":
            why[it.assignment, it.status, it.reason].append(it.student)
    if not why:
        return ""
    items = []
    for (assignment, status, reason), students in sorted(why.items(), key=lambda it: (it[0][0], -len(it[1]))):
        what = f"<strong>{escape(status)}</strong>, {breaking(assignment)}. {marked(_short(reason))}"
        items.append(f"<li>{what}{_who(students, rows)}</li>")
    return f'<h2 id="not-in-full">Not graded in full</h2><ul class="found">{"".join(items)}</ul>'


def _students(by_student: Mapping[str, Mine], columns: Sequence[str]) -> str:
    """List students and scores. Files of no lesson, which students named, could not be read and have no columns."""
    rows, marks = [], []
    held: dict[str, int] = defaultdict(int)
    for index, (student, mine) in enumerate(by_student.items()):
        kinds = [kind for kind, holds in _CHOICES.values() if holds(mine, len(columns))]
        for kind in kinds:
            held[kind] += 1
        marks.append(f' id="s{index}" class="{" ".join(kinds)}"')
        rows.append([_link(student), *(score(mine[it]) if it in mine else "none" for it in columns)])
    choices, kind = "", "students"
    if len(by_student) > TALL:
        options = [(text, kind, held[kind]) for text, (kind, _) in _CHOICES.items() if held[kind]]
        choices, kind = _chooser([("all", "all", len(by_student)), *options]), "students tall"
    heads = ("Student", *(breaking(column) for column in columns))
    return f'<section><h2 id="students">Students</h2>{choices}{table("Scores", heads, rows, kind, marks)}</section>'


def _chooser(options: Sequence[tuple[str, str, int]]) -> str:
    """Let a reader choose rows by their class, which the style sheet does: nothing in a page runs."""
    box = '<label><input type="radio" name="only" value="{}"{}> {} ({})</label>'
    inputs = "".join(box.format(kind, " checked" * (kind == "all"), text, held) for text, kind, held in options)
    return f"<fieldset><legend>Show students</legend>{inputs}</fieldset>"


def _who(students: Sequence[str], rows: Mapping[str, int]) -> str:
    """Name students: few with links to their pages, many folded, with shorter links to their rows on this page."""
    if len(students) <= NAMED:
        return f'<p class="who">{", ".join(map(_link, students))}</p>'
    links = ", ".join(
        f'<a href="#s{rows[student]}">{name(student, MAX_FOLDED)}</a>' for student in students[:MAX_NAMES]
    )
    if len(students) > MAX_NAMES:
        links += (
            f", and {len(students) - MAX_NAMES} more. The table that <code>course grade --csv</code> writes has all."
        )
    return f'<details class="who"><summary>Show {min(len(students), MAX_NAMES)} names</summary>{links}</details>'


def _link(student: str) -> str:
    return f'<a href="{page_of(student)}">{name(student)}</a>'


def _anchor(summary: AssignmentSummary) -> str:
    return "assignment-" + hashlib.sha256(summary.assignment.encode()).hexdigest()[:8]


def _short(reason: str) -> str:
    return reason if len(reason) <= MAX_REASON else f"{reason[: MAX_REASON - 4]} ..."


def _sum(mine: Mine, field: str) -> float:
    return sum(float(getattr(it, field)) for it in mine.values())
