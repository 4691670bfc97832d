"""What the pages of a report are made of: their frame, tables, and how names, scores and exercises stand there."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path

from course_utils.checks.exercise import Exercise
from course_utils.checks.registry import exercises
from course_utils.grading.submission import Result

NAMED = 8  # students that are shown without unfolding
MAX_NAME = 40  # characters of a name on a page about many; on the student's own it stands whole

CLASSES = {"correct": "correct", "incorrect": "incorrect", "error": "error", "not attempted": "none"}
# What terminals and editors obey, and what turns the direction of writing: messages hold what learners wrote.
_CONTROLS = {
    number: chr(number).encode("unicode_escape").decode()
    for number in (
        *range(0x20),
        *range(0x7F, 0xA0),
        0x61C,
        0x200E,
        0x200F,
        *range(0x2028, 0x202F),
        *range(0x2066, 0x206A),
    )
    if chr(number) not in "\n\t"
}
# Nothing in a page may run or be loaded, whatever a student's file or message holds.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(title: str, body: str) -> str:
    """Return a whole page around the HTML of its body. Controls stand there as Python writes them ("\\x1b")."""
    title, body = title.translate(_CONTROLS), body.translate(_CONTROLS)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">'
        '<meta name="color-scheme" content="light dark">'
        f"<style>{_style()}</style></head><body><main>{body}</main></body></html>\n"
    )


@cache
def _style() -> str:
    return Path(__file__).with_name("report.css").read_text(encoding="utf-8")


def page_of(student: str) -> str:
    """Return where a student's page lies in the folder. No two names have one page, however they were made."""
    readable = re.sub(r"[^a-z0-9]+", "-", student.lower()).strip("-")[:40]
    return f"students/{readable}-{hashlib.sha256(student.encode()).hexdigest()}.html"


def name(text: str, most: int = MAX_NAME) -> str:
    """Return a name as HTML, without its middle where it is long. What it is written in turns no text beside it."""
    short = text if len(text) <= most else f"{text[: most - 15]} ... {text[-10:]}"
    return f"<bdi>{escape(short)}</bdi>"


def breaking(text: str) -> str:
    """Return the name of an assignment as HTML that a narrow column may break after its underscores."""
    return escape(text).replace("_", "_<wbr>")


def exercise(id: str) -> str:
    """Return what an exercise is called, as HTML: its title, and the name that learners write."""
    known = known_exercise(id)
    code = f"<code>{escape(id)}</code>"
    return f"{escape(known.title)} {code}" if known else code


def known_exercise(id: str) -> Exercise | None:
    """Return the exercise of a result, None where this course has none of that name."""
    return exercises().get(id)


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], kind: str, marks: Iterable[str]) -> str:
    """Lay out a table of HTML cells: the first column heads its row, all others are numbers or bars.

    `kind` is its class, and `marks` are the attributes of each row.
    """
    head = "".join(f'<th scope="col"><span>{cell}</span></th>' for cell in heads)
    body = []
    for row, mark in zip(rows, marks, strict=True):
        first, *others = row
        cells = "".join(f"<td>{cell}</td>" for cell in others)
        body.append(f'<tr{mark}><th scope="row">{first}</th>{cells}</tr>')
    return (
        f'<div class="scroll {kind}" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def bar(shares: Iterable[tuple[str, float]]) -> str:
    """Draw shares of a whole, each by its class. The numbers stand beside it."""
    parts = "".join(f'<span class="{kind}" style="width:{100 * share:.1f}%"></span>' for kind, share in shares if share)
    return f'<div class="bar" aria-hidden="true">{parts}</div>'


def score(result: Result) -> str:
    """Return a score as HTML, with the status where that is not "graded"."""
    text = f"{number(result.score)} of {number(result.points)}"
    return text if result.status == "graded" else f"{text} ({escape(result.status)})"


def number(value: float) -> str:
    """Return points with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def count(number: int, word: str) -> str:
    """Return how many of something there are: "1 student", "2 students"."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"
