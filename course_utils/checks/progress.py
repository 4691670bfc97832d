"""What a learner has done so far, in a small SQLite file of their own."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from html import escape
from pathlib import Path

import platformdirs

from course_utils.checks.exercise import Exercise, Outcome
from course_utils.checks.registry import LESSONS, exercises
from course_utils.checks.show import MARKS, Shown

_SCHEMA = """
create table if not exists attempts (
    exercise text not null,
    outcome text not null,
    at text not null default current_timestamp
)
"""


def path() -> Path:
    """Return where progress is kept: $COURSE_PROGRESS, or a file in the user's own data folder."""
    chosen = os.environ.get("COURSE_PROGRESS")
    return Path(chosen) if chosen else platformdirs.user_data_path("autograd-course") / "progress.sqlite"


def record(exercise_id: str, outcome: Outcome) -> None:
    """Keep one outcome. Where the file cannot be written nothing is kept, and the check goes on."""
    if outcome == "not attempted":
        return
    try:
        with _database() as database, database:
            database.execute("insert into attempts (exercise, outcome) values (?, ?)", (exercise_id, outcome))
    except (OSError, sqlite3.Error):
        return


def outcomes() -> dict[str, tuple[Outcome, int]]:
    """Return for each tried exercise the best outcome and how often it was checked.

    Raises OSError or sqlite3.Error where the file cannot be read.
    """
    with _database() as database:
        rows = database.execute("select exercise, outcome from attempts order by rowid").fetchall()
    found: dict[str, tuple[Outcome, int]] = {}
    for exercise, outcome in rows:
        if outcome not in MARKS:  # written by another version of the course
            continue
        best, tries = found.get(exercise, (outcome, 0))
        found[exercise] = ("correct" if "correct" in (best, outcome) else outcome, tries + 1)
    return found


def progress() -> Shown:
    """Return a table of all lessons: each exercise, its outcome so far, and the points reached."""
    try:
        done = outcomes()
        note = ""
    except (OSError, sqlite3.Error) as error:
        done = {}
        note = f"Your progress could not be read from {path()}: {error}. Delete that file to start a new one."
    rows = [_row(exercise, done) for exercise in exercises().values()]
    solved = [
        exercise for exercise in exercises().values() if exercise.id in done and done[exercise.id][0] == "correct"
    ]
    reached, total = sum(e.points for e in solved), sum(e.points for e in exercises().values())
    summary = f"{len(solved)} of {len(rows)} exercises solved, {reached} of {total} points."
    return Shown(_text(rows, summary, note), _html(rows, summary, note))


@contextmanager
def _database() -> Iterator[sqlite3.Connection]:
    file = path()
    file.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(file, timeout=2)) as database:
        database.execute(_SCHEMA)
        yield database


def _row(exercise: Exercise, done: dict[str, tuple[Outcome, int]]) -> tuple[str, str, str, str, str]:
    outcome, tries = done.get(exercise.id, ("not attempted", 0))
    points = f"{exercise.points if outcome == 'correct' else 0}/{exercise.points}"
    return exercise.lesson, exercise.id, f"{MARKS[outcome]} {outcome}", points, f"{tries}" if tries else ""


def _text(rows: list[tuple[str, str, str, str, str]], summary: str, note: str) -> str:
    lines = []
    width = max(len(row[1]) for row in rows)
    for lesson in LESSONS:
        lines.append(lesson)
        mine = [row for row in rows if row[0] == lesson]
        lines += [f"  {name:<{width}}  {state:<15}  {points:>5}" for _, name, state, points, _ in mine]
    return "\n".join([*lines, summary, *([note] if note else [])])


def _html(rows: list[tuple[str, str, str, str, str]], summary: str, note: str) -> str:
    head = "".join(f'<th scope="col">{title}</th>' for title in ("lesson", "exercise", "outcome", "points", "checks"))
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    table = f"<table><caption>{escape(summary)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return table + (f"<p>{escape(note)}</p>" if note else "")
