"""`progress()`: where you are, what comes next, what is left."""

import sqlite3

import pytest

from course_utils import check, progress
from course_utils.checks.check import CheckFailed
from course_utils.checks.progress import path, record
from course_utils.checks.registry import exercises
from course_utils.checks.routes import ROUTES, core_of


@pytest.fixture(autouse=True)
def own_file(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "deep" / "progress.sqlite"))


def test_it_leads_to_the_first_exercise_that_is_not_solved():
    record("slope", "correct")
    first, second, *_ = str(progress()).splitlines()
    assert first == (
        "Next: lesson 00, exercise first_gradient (about 4 minutes). It stands in exercises/00_start_here.ipynb."
    )
    count = sum(len(core_of(lesson)) for lesson in ROUTES["all"].lessons)
    assert f"1 of {count} exercises solved, about " in second
    assert second.endswith(" left.")


def test_hours_shrink_and_a_finished_route_says_so():
    for exercise in exercises().values():
        if exercise.lesson != "09_practical_checklist":
            record(exercise.id, "correct")
    assert "hours left." in str(progress("train")) or "minutes left." in str(progress("train"))
    assert str(progress("project")).startswith('Route "project" is done: all 10 exercises of it are solved.')


def test_each_lesson_has_a_bar_and_its_exercises_are_folded():
    for outcome in ("incorrect", "correct", "error"):
        record("slope", outcome)
    shown = progress()
    assert "00_start_here              [####--------]  1 of 3" in str(shown)
    assert "    slope  ✔ correct  1/1" in str(shown)
    assert '<progress value="1" max="3" aria-label="1 of 3 solved"></progress>' in shown.html
    assert "<details><summary>" in shown.html
    assert '<th scope="col">' in shown.html


def test_points_and_first_checks_are_counted():
    with pytest.raises(CheckFailed):
        check("slope", lambda x: x)
    check("first_gradient", 8)
    assert "1 of the 2 that you tried were right at the first check." in str(progress())
    total = sum(exercise.points for exercise in exercises().values())
    assert f"Points, in all lessons: 1 of {total}." in str(progress())


def test_a_damaged_progress_file_is_named():
    path().parent.mkdir(parents=True)
    path().write_text("no database")
    assert "Delete that file to start a new one." in str(progress())


def test_unknown_rows_in_the_progress_file_are_ignored():
    record("slope", "correct")
    with sqlite3.connect(path()) as database:
        database.execute("insert into attempts (exercise, outcome) values ('gone', 'correct')")
        database.execute("insert into attempts (exercise, outcome) values ('first_gradient', 'weird')")
    assert "gone" not in str(progress())
    assert "weird" not in str(progress())
