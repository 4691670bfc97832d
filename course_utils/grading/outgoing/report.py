"""`course report`: a page about the class and a page for each student. Static HTML that needs no network."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path

import msgspec

from course_utils.checks.exercise import Exercise
from course_utils.checks.registry import exercises
from course_utils.checks.show import MARKS
from course_utils.grading.errors import GradingError
from course_utils.grading.outgoing import flagged
from course_utils.grading.outgoing.export import replace_file
from course_utils.grading.outgoing.summary import AssignmentSummary, MisconceptionSummary, summarise
from course_utils.grading.submission import ExerciseResult, Result
from course_utils.inline import marked

OUTCOMES = ("correct", "incorrect", "error", "not attempted")
NAMED = 8  # students that are shown without unfolding

_NO_PAGE = "What the checks say could not be laid out ({}). It stands in what `course grade --json` writes."
_CLASSES = {"correct": "correct", "incorrect": "incorrect", "error": "error", "not attempted": "none"}
# Nothing in a page may run or be loaded, whatever a student's file or message holds.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class ReportError(GradingError):
    """A report cannot be written. The message names the file or folder."""


def write_report(results: Sequence[Result], folder: Path) -> list[Path]:
    """Write index.html for the class and students/*.html into `folder`, and return their paths, the class first.

    A student's page holds nothing about others, so it can be handed out. Raises ReportError where there are no
    results, where a page cannot be written, and at the end where one could not be laid out.
    """
    if not results:
        raise ReportError("there are no results to report yet. Grade submissions first: `course grade`.")
    by_student: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_student[result.student].append(result)
    failed: list[str] = []
    pages = {folder / "index.html": class_page(results)}
    for student, mine in sorted(by_student.items()):
        try:
            page = student_page(student, mine)
        except Exception as error:  # all others are written
            page = _without_words(student, mine, error)
            failed.append(student)
        pages[folder / page_of(student)] = page
    try:
        (folder / "students").mkdir(parents=True, exist_ok=True)
        for path, page in pages.items():
            replace_file(path, page.encode())
    except OSError as error:
        raise ReportError(f"{error.filename or folder}: cannot be written: {error.strerror}.") from error
    if failed:
        raise ReportError(
            f"{len(failed)} of {len(by_student)} pages are without what the checks say, which could not be laid out. "
            f"All others are whole. They are those of {', '.join(failed[:NAMED])}"
            f"{' and others' * (len(failed) > NAMED)}."
        )
    return list(pages)


def page_of(student: str) -> str:
    """Return where a student's page lies in the folder. No two names have one page, however they were made."""
    readable = re.sub(r"[^a-z0-9]+", "-", student.lower()).strip("-")[:40]
    return f"students/{readable}-{hashlib.sha256(student.encode()).hexdigest()}.html"


def _without_words(student: str, mine: Sequence[Result], error: Exception) -> str:
    reason = _NO_PAGE.format(type(error).__name__)
    return student_page(
        student, [msgspec.structs.replace(one, exercises=(), status="crashed", reason=reason) for one in mine]
    )


def class_page(results: Sequence[Result]) -> str:
    """Return the page about the whole class."""
    summaries = summarise(results)
    students = {result.student for result in results}
    body = [f"<h1>Class report</h1><p>{_count(len(students), 'student')}, {_count(len(results), 'submission')}.</p>"]
    if len(summaries) > 1:
        links = "".join(f'<li><a href="#{_anchor(it)}">{escape(it.assignment)}</a></li>' for it in summaries)
        body.append(f'<nav aria-label="Assignments"><ul>{links}<li><a href="#students">Students</a></li></ul></nav>')
    body += [_assignment(summary) for summary in summaries]
    body.append(_not_in_full(results))
    if any(result.flags for result in results):
        body.append(flagged.HEADING + _table(flagged.CAPTION, flagged.HEADS, flagged.rows(results, _link)))
    body.append(_students(results))
    return _page("Class report", "".join(body))


def student_page(student: str, results: Sequence[Result]) -> str:
    """Return the page about one student's results."""
    body = [f"<h1>{escape(student)}</h1>"]
    for result in results:
        body.append(f"<h2>{escape(result.assignment)}</h2><p><strong>{_score(result)}</strong> points.")
        if result.status != "graded":
            body.append(f" Status: {escape(result.status)}. {marked(result.reason)}")
        body.append(
            f'</p><p class="small">Graded in {result.seconds:.1f} s from <code>{escape(result.path)}</code></p>'
        )
        if result.exercises:
            rows = [_exercise_row(exercise) for exercise in result.exercises]
            heads = ("Exercise", "Outcome", "Points", "What the check says")
            body.append(_table(f"Exercises of {result.assignment}", heads, rows, numbers=(2,)))
    return _page(student, "".join(body))


def _assignment(summary: AssignmentSummary) -> str:
    statuses = ", ".join(f"{count} {escape(status)}" for status, count in summary.statuses.items())
    parts = [f'<h2 id="{_anchor(summary)}">{escape(summary.assignment)}</h2>']
    parts.append(f"<p>{_count(summary.total, 'submission')}: {statuses}.")
    if summary.scores is not None:
        mean, median, points = map(_number, (summary.scores.mean, summary.scores.median, summary.points))
        parts.append(f" Of those that could be read, the mean score is {mean} and the median {median} of {points}.")
    parts.append("</p>")
    if summary.exercises:
        parts.append(_outcomes(summary))
        parts.append(_misconceptions(summary.assignment, summary.misconceptions))
    if summary.scores is not None:
        parts.append(_distribution(summary.assignment, summary.bins))
    if summary.seconds is None:
        return "".join(parts)
    times = (summary.seconds.median, summary.seconds.ninety, summary.seconds.largest)
    median, ninety, largest = (f"{seconds:.2f} s" for seconds in times)
    parts.append(f"<h3>Times</h3><p>Grading took {median} in the median; 9 in 10 took at most {ninety}, the ")
    parts.append(f"slowest {largest}.</p>")
    return "".join(parts)


def _outcomes(summary: AssignmentSummary) -> str:
    rows = []
    for exercise in summary.exercises:
        shares = [(_CLASSES[name], exercise.outcomes.get(name, 0) / exercise.total) for name in OUTCOMES]
        counts = [str(exercise.outcomes.get(name, 0)) for name in OUTCOMES]
        rows.append([_exercise(exercise.id), _bar(shares), *counts, f"{exercise.seconds:.2f} s"])
    keys = [
        f'<span class="bar key" aria-hidden="true"><span class="{_CLASSES[name]}"></span></span>{name}'
        for name in OUTCOMES
    ]
    heads = ("Exercise", "Shares", *keys, "Median time")
    return "<h3>Outcomes</h3>" + _table(
        f"Submissions of {summary.assignment} by outcome", heads, rows, numbers=range(2, 7)
    )


def _misconceptions(assignment: str, found: Sequence[MisconceptionSummary]) -> str:
    if not found:
        return "<h3>Misconceptions</h3><p>No known misconception was recognised.</p>"
    rows = []
    for one in found:
        links = ", ".join(_link(student) for student in one.students)
        if len(one.students) > NAMED:
            links = f"<details><summary>Show {len(one.students)} names</summary>{links}</details>"
        sentence = _sentence(one.exercise, one.name)
        idea = f"<strong>{escape(one.name)}</strong>" + (f'<p class="said small">{sentence}</p>' if sentence else "")
        rows.append([str(len(one.students)), idea, f"<code>{escape(one.exercise)}</code>", links])
    heads = ("Students", "Misconception, and what the check tells", "Exercise", "Who")
    return "<h3>Misconceptions</h3>" + _table(
        f"Wrong ideas recognised in {assignment}, the most frequent first", heads, rows, numbers=(0,)
    )


def _distribution(assignment: str, bins: Sequence[int]) -> str:
    rows = []
    for index, count in enumerate(bins):
        last = 100 if index == len(bins) - 1 else 10 * index + 9
        rows.append([f"{10 * index} to {last} %", str(count), _bar([("count", count / max(bins))])])
    heads = ("Share of the points", "Submissions", "Chart")
    return "<h3>Distribution of scores</h3>" + _table(
        f"Submissions of {assignment} by score", heads, rows, numbers=(1,)
    )


def _not_in_full(results: Iterable[Result]) -> str:
    rows = [
        [
            _link(it.student),
            escape(it.assignment),
            escape(it.status),
            marked(it.reason),
            f"<code>{escape(it.path)}</code>",
        ]
        for it in results
        if it.status != "graded"
    ]
    if not rows:
        return ""
    heads = ("Student", "Assignment", "Status", "Reason", "File")
    return "<h2>Not graded in full</h2>" + _table("Submissions that could not be read, or were stopped", heads, rows)


def _students(results: Iterable[Result]) -> str:
    by_student: dict[str, dict[str, Result]] = defaultdict(dict)
    assignments: dict[str, None] = {}
    for result in results:
        by_student[result.student][result.assignment] = result
        assignments[result.assignment] = None
    columns = sorted(assignments)
    rows = []
    for student in sorted(by_student):
        mine = by_student[student]
        rows.append([_link(student), *(_score(mine[it]) if it in mine else "none" for it in columns)])
    heads = ("Student", *(escape(column) for column in columns))
    return '<h2 id="students">Students</h2>' + _table("Scores", heads, rows, numbers=range(1, len(heads)))


def _exercise_row(exercise: ExerciseResult) -> list[str]:
    said = "".join(f'<p class="said">{marked(text)}</p>' for text in (*exercise.messages, *exercise.withheld))
    ideas = "; ".join(escape(name) for name in exercise.misconceptions)
    if ideas:
        said += f'<p class="small">Recognised: {ideas}.</p>'
    said += flagged.resting(exercise)
    outcome = f'<span class="whole">{MARKS.get(exercise.outcome, "")} {escape(exercise.outcome)}</span>'
    return [_exercise(exercise.id), outcome, f"{_number(exercise.score)} of {_number(exercise.points)}", said]


def _exercise(id: str) -> str:
    known = _known(id)
    name = f"<code>{escape(id)}</code>"
    return f"{escape(known.title)}<br>{name}" if known else name


def _sentence(id: str, misconception: str) -> str:
    known = _known(id)
    found = [it.message for it in known.misconceptions if it.name == misconception] if known else []
    return marked(found[0]) if found else ""


def _known(id: str) -> Exercise | None:
    return exercises().get(id)


def _table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> str:
    """Lay out a table of HTML cells. The first column heads its row; `numbers` are columns to align right."""
    classes = {index: ' class="number"' for index in numbers}
    head = "".join(f'<th scope="col"{classes.get(index, "")}>{cell}</th>' for index, cell in enumerate(heads))
    body = []
    for row in rows:
        first, *others = row
        cells = "".join(f"<td{classes.get(index, '')}>{cell}</td>" for index, cell in enumerate(others, start=1))
        body.append(f'<tr><th scope="row"{classes.get(0, "")}>{first}</th>{cells}</tr>')
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _bar(shares: Iterable[tuple[str, float]]) -> str:
    parts = "".join(f'<span class="{kind}" style="width:{100 * share:.1f}%"></span>' for kind, share in shares if share)
    return f'<div class="bar" aria-hidden="true">{parts}</div>'


def _link(student: str) -> str:
    return f'<a href="{page_of(student)}">{escape(student)}</a>'


def _anchor(summary: AssignmentSummary) -> str:
    return "assignment-" + hashlib.sha256(summary.assignment.encode()).hexdigest()[:8]


def _score(result: Result) -> str:
    score = f"{_number(result.score)} of {_number(result.points)}"
    return score if result.status == "graded" else f"{score} ({escape(result.status)})"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


@cache
def _style() -> str:
    return Path(__file__).with_name("report.css").read_text(encoding="utf-8")


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">'
        f"<style>{_style()}</style></head><body><main>{body}</main></body></html>\n"
    )
