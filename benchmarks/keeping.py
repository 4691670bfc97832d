"""What keeping results costs: in the gradebook, and in nbgrader's."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.timing import Row, seconds
from course_utils.grading.gradebook import Gradebook
from course_utils.grading.intake.classroom import handed_in, open_classroom
from course_utils.grading.outgoing.posting import post
from course_utils.grading.submission import ExerciseResult, Result, Submission
from tests.grading.nbgrader_course import LESSON, RIGHT, answered, hand_in, make_course

KEPT, POSTED = 500, 100
KEEP, POST = 10, 20  # milliseconds


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        yield _kept(Path(name))
        yield from _posted(Path(name))


def _kept(folder: Path) -> Row:
    with Gradebook(folder / "class.sqlite") as book:
        submissions = [Submission(f"s{number}", LESSON, "p", "d") for number in range(KEPT)]
        took = seconds(lambda: [book.add(one, _result(one.student)) for one in submissions])
    each = took / KEPT * 1e3
    return Row("keeping a result in the gradebook", f"{each:.1f} ms", f"at most {KEEP} ms", each <= KEEP)


def _posted(folder: Path) -> Iterator[Row]:
    course = make_course(folder / "c")
    text = json.dumps(answered(course, RIGHT))
    for number in range(POSTED):
        hand_in(course, f"s{number:03}", text)
    room = open_classroom(course)
    handed = handed_in(room)
    results = {(one.student, LESSON): _result(one.student) for one in handed}
    for when in ("first", "again, where all is there"):
        each = seconds(lambda: post(room, handed, results)) / POSTED * 1e3
        what = f"a result and its notebook into an nbgrader course, {when}"
        yield Row(what, f"{each:.1f} ms", f"at most {POST} ms", each <= POST)


def _result(student: str) -> Result:
    rows = tuple(
        ExerciseResult(name, "correct", 1.0, 1.0, (), (f"{name} said.",), 0.1) for name in ("first_gradient", "slope")
    )
    return Result(student, LESSON, "p", "graded", 2.0, 2.0, 0.1, rows, "")
