"""`progress`: where you are, what comes next, and how many hours are left."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from course_utils.checks.exercise import Exercise
from course_utils.checks.progress import Tried, outcomes, path
from course_utils.checks.registry import LESSONS, exercises, exercises_of
from course_utils.checks.routes import ROUTES, Route, core_of, minutes_of, next_on, route_called
from course_utils.checks.show import MARKS, Shown

_BAR = 12
_NEVER = Tried("not attempted", 0, 0.0)


@dataclass(frozen=True)
class _Lesson:
    """One lesson's line: how many of its exercises are solved, and a row for each."""

    name: str
    solved: int
    rows: tuple[tuple[str, ...], ...]


def progress(route: str = "all") -> Shown:
    """Return where you are on a route: what comes next, the hours left, and a bar for each lesson.

    `route` is "all" (lessons 00 to 10 in order), "train" (for those who train models) or "project" (lesson 11).
    Raises ValueError for another name.
    """
    way = route_called(route)
    try:
        done, note = outcomes(), ""
    except (OSError, sqlite3.Error) as error:
        done = {}
        note = f"Your progress could not be read from {path()}: {error}. Delete that file to start a new one."
    lessons = [_lesson(lesson, done) for lesson in LESSONS]
    lead = [*_lead(way, done), *([note] if note else [])]
    return Shown(_text(lead, lessons), _html(lead, lessons))


def _lead(route: Route, done: Mapping[str, Tried]) -> list[str]:
    solved = {name for name, tried in done.items() if tried.outcome == "correct"}
    following = next_on(route, solved)
    core = [exercise for lesson in route.lessons for exercise in core_of(lesson)]
    count = sum(exercise.id in solved for exercise in core)
    if following is None:
        lines = [f'Route "{route.name}" is done: all {len(core)} exercises of it are solved.']
    else:
        left = sum(minutes_of(lesson, solved) for lesson in route.lessons)
        lines = [
            f"Next: lesson {following.lesson[:2]}, exercise {following.id} (about {following.minutes} minutes). "
            f"It stands in exercises/{following.lesson}.ipynb.",
            f'Route "{route.name}", {route.purpose}: {count} of {len(core)} exercises solved, '
            f"about {_hours(left)} left.",
        ]
    known = [exercise for exercise in exercises().values() if exercise.id in done]
    if len(known) > 1:
        at_once = sum(done[exercise.id].first == 1 for exercise in known)
        lines.append(f"{at_once} of the {len(known)} that you tried were right at the first check.")
    points = [(it.points if it.id in solved else 0, it.points) for it in exercises().values()]
    lines.append(f"Points, in all lessons: {sum(p for p, _ in points)} of {sum(p for _, p in points)}.")
    others = " and ".join(f'progress("{name}")' for name in ROUTES if name != route.name)
    return [*lines, f"Other routes: {others}."]


def _hours(minutes: int) -> str:
    if minutes < 55:
        return f"{minutes} minutes"
    hours = round(minutes / 30) / 2
    return "1 hour" if hours == 1 else f"{hours:g} hours"


def _lesson(lesson: str, done: Mapping[str, Tried]) -> _Lesson:
    rows = tuple(_row(exercise, done.get(exercise.id, _NEVER)) for exercise in exercises_of(lesson))
    solved = sum(done.get(exercise.id, _NEVER).outcome == "correct" for exercise in exercises_of(lesson))
    return _Lesson(lesson, solved, rows)


def _row(exercise: Exercise, tried: Tried) -> tuple[str, ...]:
    points = f"{exercise.points if tried.outcome == 'correct' else 0}/{exercise.points}"
    counts = (f"{tried.checks}", f"{tried.first:.0%}") if tried.checks else ("", "")
    return exercise.id, f"{MARKS[tried.outcome]} {tried.outcome}", points, *counts


def _text(lead: list[str], lessons: list[_Lesson]) -> str:
    width = max(len(lesson.name) for lesson in lessons)
    lines = [*lead, ""]
    for lesson in lessons:
        filled = _BAR * lesson.solved // len(lesson.rows)
        bar = "#" * filled + "-" * (_BAR - filled)
        lines.append(f"{lesson.name:<{width}}  [{bar}]  {lesson.solved} of {len(lesson.rows)}")
        lines += [f"    {name}  {state}  {points}" for name, state, points, *counts in lesson.rows if counts[0]]
    return "\n".join(lines)


def _html(lead: list[str], lessons: list[_Lesson]) -> str:
    first, *others = lead
    small = "".join(f"<p>{escape(line)}</p>" for line in others)
    return f"<div><p><strong>{escape(first)}</strong></p>{small}{''.join(map(_folded, lessons))}</div>"


def _folded(lesson: _Lesson) -> str:
    titles = ("exercise", "outcome", "points", "checks", "right at the first")
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in lesson.rows)
    count = f"{lesson.solved} of {len(lesson.rows)}"
    bar = f'<progress value="{lesson.solved}" max="{len(lesson.rows)}" aria-label="{count} solved"></progress>'
    return (
        f"<details><summary>{bar} {escape(lesson.name)}: {count} solved</summary>"
        f"<table><caption>{escape(lesson.name)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        "</details>"
    )
