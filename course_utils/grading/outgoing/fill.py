"""Filling scores into the file that a teacher exported from Canvas or Moodle, and will import there again."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from course_utils.checks.registry import LESSONS
from course_utils.grading.errors import GradingError
from course_utils.grading.intake.identity import shown
from course_utils.grading.outgoing.sheet import Sheet, SheetError, read_sheet
from course_utils.grading.submission import Result, within

_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)?")
_PARTICIPANT = re.compile(r"[^0-9]*([0-9]+)")
_CANVAS_ID = re.compile(r"\s*\([0-9]+\)$")
_CANVAS_PERSON = ("ID", "SIS User ID", "SIS Login ID", "Integration ID", "Root Account", "Section")
_KEPT = ("EX", "N/A")  # Canvas: excused, and not assigned to this student


class FillError(GradingError):
    """Scores cannot be filled into a file. The message says what the file lacks, or what to add to the command."""


@dataclass(frozen=True)
class Filled:
    """A file with scores, how many cells were written, and sentences about what was not as expected."""

    content: bytes
    cells: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Column:
    """Where the scores of a lesson belong, and how many points they count there; None for those of the course."""

    lesson: str
    index: int
    points: float | None
    comma: bool = False


@dataclass(frozen=True)
class _Person:
    """A student's row: what the platform shows, its number for them, and other texts that only they have."""

    row: int
    name: str
    number: str
    keys: tuple[str, ...]


def fill_canvas(data: bytes, results: Sequence[Result], lesson: str | None = None, column: str | None = None) -> Filled:
    """Fill a gradebook that Canvas exported, in every column that is called as a lesson with results, or in `column`.

    A column is a lesson's if it holds the lesson's name, however it is written, or begins with its number. A student
    is found by the number in the name of the file that was handed in, else by SIS id, login or name. Scores count as
    many points as the row "Points Possible" says. "EX" and "N/A" stay, and so does every byte of other cells.

    Raises FillError for what is no such file, or has no column or several for a lesson.
    """
    sheet = _sheet(data, "Canvas gradebook (Grades, Export)")
    header = [sheet.text(0, index) for index in range(len(sheet.rows[0]))]
    most = next((row for row in range(1, len(sheet.rows)) if "Points Possible" in sheet.text(row, 0)), None)
    if most is None or "ID" not in header[:4]:
        raise FillError('it is no gradebook of Canvas: that has a column "ID" and a row "Points Possible"')
    names = range(header.index("ID"))
    keys = [header.index(key) for key in ("SIS User ID", "SIS Login ID") if key in header]
    people = []
    for row in range(most + 1, len(sheet.rows)):
        number = sheet.text(row, header.index("ID"))
        name = ", ".join(sheet.text(row, index) for index in names)
        if number:
            people.append(_Person(row, name, number, (*(sheet.text(row, index) for index in keys), name)))
    free = [
        (index, _CANVAS_ID.sub("", title))
        for index, title in enumerate(header)
        if index > header.index("ID") and title not in _CANVAS_PERSON and "read only" not in sheet.text(most, index)
    ]
    columns = [
        _Column(one, index, _value(sheet.text(most, index)), "," in sheet.text(most, index))
        for one in _lessons(results, lesson, single=column is not None)
        if (index := _canvas_column(one, free, header, column, optional=lesson is None)) is not None
    ]
    if not columns:
        raise FillError(
            f"no column is called as a lesson with results ({', '.join(_lessons(results, None))}). "
            f"Name one with --column, and its lesson with --lesson. It has: {_listed(title for _, title in free)}"
        )
    return _fill(sheet, people, columns, results)


def fill_moodle(data: bytes, results: Sequence[Result], lesson: str | None = None, column: str | None = None) -> Filled:
    """Fill the grading worksheet of one of Moodle's assignments with the scores of one lesson.

    The grades stand in the column "Grade", or in the one before the column where all rows have the same number, the
    maximum grade: so in every language. A student is found by the number in the name of the folder that was handed
    in, else by address or full name. Scores count as many points as the maximum grade. Every byte of other cells stays.

    Raises FillError for what is no such file, and where it is not clear which lesson or column is meant.
    """
    sheet = _sheet(data, "Moodle grading worksheet (Submissions, Download grading worksheet)")
    header = [sheet.text(0, index) for index in range(len(sheet.rows[0]))]
    rows = [row for row in range(1, len(sheet.rows)) if sheet.text(row, 0)]
    numbers = [_PARTICIPANT.fullmatch(sheet.text(row, 0)) for row in rows]
    if not rows or not all(numbers):
        raise FillError(
            'it is no grading worksheet of Moodle: the first column of that holds "Participant 123" or the like in '
            "each row. In the assignment's settings, switch on Feedback types: Offline grading worksheet"
        )
    index = _moodle_column(sheet, header, rows, column)
    most = {sheet.text(row, index + 1) for row in rows}
    points = _value(next(iter(most))) if len(most) == 1 else None
    (one,) = _lessons(results, lesson, single=True)
    people = [
        _Person(row, sheet.text(row, 1), number[1], (sheet.text(row, 1), sheet.text(row, 2), sheet.text(row, 3)))
        for row, number in zip(rows, numbers, strict=True)
        if number
    ]
    comma = points is not None and "," in next(iter(most))
    return _fill(sheet, people, [_Column(one, index, points, comma)], results)


def _sheet(data: bytes, what: str) -> Sheet:
    try:
        return read_sheet(data)
    except SheetError as error:
        raise FillError(f"it is no {what}: {error}") from error


def _lessons(results: Iterable[Result], lesson: str | None, single: bool = False) -> list[str]:
    """Return the lessons with results: all of them, or the one that is meant."""
    there = {result.assignment for result in results} & set(LESSONS)
    if lesson is not None:
        there &= {lesson}
    if not there:
        raise FillError(f"there are no results of {lesson or 'any lesson'}")
    if single and len(there) > 1:
        raise FillError(f"there are results of several lessons. Say which with --lesson: {', '.join(sorted(there))}")
    return sorted(there)


def _canvas_column(
    lesson: str, free: list[tuple[int, str]], header: list[str], column: str | None, optional: bool
) -> int | None:
    number, _, name = lesson.partition("_")
    if column is not None:
        found = [index for index, title in free if column in (title, header[index])]
    else:
        found = [index for index, title in free if _plain(name) in _plain(title)]
        found = found or [index for index, title in free if re.match(rf"{number}(?!\d)", title)]
    if len(found) == 1 or (not found and optional and column is None):
        return found[0] if found else None
    titles = _listed(header[index] for index in found) if found else _listed(title for _, title in free)
    wanted = f"called {column!r}" if column is not None else f"for {lesson}"
    if found:
        raise FillError(f"it has several columns {wanted}: {titles}. Name one with --column and --lesson")
    raise FillError(f"it has no column {wanted}. Name one with --column: {titles}")


def _moodle_column(sheet: Sheet, header: list[str], rows: list[int], column: str | None) -> int:
    if column is not None:
        found = [index for index, title in enumerate(header) if title == column]
    else:
        found = [index for index, title in enumerate(header) if title.casefold() == "grade"]
        found = found or [index for index in range(1, len(header) - 1) if _before_maximum(sheet, rows, index)]
    if len(found) != 1:
        raise FillError(
            f"it has {len(found) or 'no'} columns that may be the one for grades. "
            f"Name it with --column: {_listed(header)}"
        )
    return found[0]


def _before_maximum(sheet: Sheet, rows: list[int], index: int) -> bool:
    right = {sheet.text(row, index + 1) for row in rows}
    here = {sheet.text(row, index) for row in rows} - {"", "-"}
    return len(right) == 1 and _value(next(iter(right))) is not None and all(_value(text) is not None for text in here)


def _fill(sheet: Sheet, people: list[_Person], columns: list[_Column], results: Sequence[Result]) -> Filled:
    numbers: dict[tuple[int, int], str] = {}
    notes: list[str] = []
    for column in columns:
        theirs = [result for result in results if result.assignment == column.lesson]
        wanted: dict[int, list[Result]] = defaultdict(list)
        known = {person.row: person for person in people}
        for result in theirs:
            rows = _rows_of(result, people)
            if len(rows) == 1:
                wanted[rows[0].row].append(result)
            elif rows:
                notes.append(f"{result.student}: several rows may be theirs, so none was filled.")
            else:
                why = "" if result.status == "graded" else f" {result.reason}"
                notes.append(f"{result.student}: no row is theirs.{why}")
        for row, found in wanted.items():
            name = shown(known[row].name)
            if len(found) > 1:
                who = " and ".join(result.student for result in found)
                notes.append(f"{name}: {who} may both be this row's, so it was not filled.")
            elif sheet.text(row, column.index).upper() in _KEPT:
                notes.append(f"{name}: {sheet.text(row, column.index)} stays, in place of a score.")
            elif column.index >= len(sheet.rows[row]):
                notes.append(f"{name}: the row ends before the column for scores, so it was not filled.")
            else:
                numbers[row, column.index] = _score(found[0], column)
                if found[0].status != "graded":
                    notes.append(f"{found[0].student}: {found[0].status}. {found[0].reason}")
        notes += [f"{shown(person.name)}: nothing was handed in." for person in people if person.row not in wanted]
        course = max((result.points for result in theirs), default=0.0)
        scaled = f"; {course:g} points count as {column.points:g}" if column.points not in (None, course) else ""
        written = sum(index == column.index for _, index in numbers)
        notes.append(f"{column.lesson}: {written} scores in the column {sheet.text(0, column.index)!r}{scaled}.")
    if not numbers:
        raise FillError("no student of the results was found in it, so nothing was written:\n  " + "\n  ".join(notes))
    return Filled(sheet.with_numbers(numbers), len(numbers), tuple(notes))


def _rows_of(result: Result, people: list[_Person]) -> list[_Person]:
    if result.number:
        return [person for person in people if person.number == result.number]
    student = result.student.casefold()
    return [person for person in people if student in {shown(key).casefold() for key in person.keys}]


def _score(result: Result, column: _Column) -> str:
    score = within(result.score, result.points)
    if column.points is not None and result.points:
        score *= column.points / result.points
    text = f"{score:.2f}".rstrip("0").rstrip(".")
    return text.replace(".", ",") if column.comma else text


def _value(text: str) -> float | None:
    return float(text.replace(",", ".")) if _NUMBER.fullmatch(text) else None


def _plain(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def _listed(titles: Iterable[str]) -> str:
    return ", ".join(repr(shown(title)) for title in titles)
