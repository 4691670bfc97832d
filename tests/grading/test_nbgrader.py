"""The real nbgrader: it takes the course's notebooks as they are, agrees on scores, and goes on from ours."""

import csv
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner
from nbformat.v4 import new_markdown_cell, new_output, new_raw_cell

from course_utils import cli
from tests.grading.nbgrader_course import CONFIG, LESSON, RIGHT, ROOT, answered, hand_in
from tests.grading.submissions import points_of, total_of

UNSAFE = 'def slope(x):\n    raise ValueError("<script>alert(1)</script>")'
HTML = "<script>alert(2)</script><img src=x onerror=alert(2)>"
CLASS = {"ann": RIGHT, "bob": {"first_gradient": RIGHT["first_gradient"], "slope": UNSAFE}, "carl": {}}


def nbgrader(course: Path, *arguments: str) -> str:
    """Run nbgrader's command in a course, and return what it printed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # it starts `alembic` by its name
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "nbgrader", *arguments]
    done = subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def grade(course: Path, *arguments: str) -> str:
    command = (
        "grade",
        "--nbgrader",
        str(course),
        "--db",
        str(course.parent / "grades.sqlite"),
        "--jobs",
        "1",
        *arguments,
    )
    result = CliRunner().invoke(cli.course, command)
    if "no sandbox" in result.output.lower():
        pytest.skip("this machine forbids every kind of sandbox that the grader knows")
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> Path:
    """A course of one lesson, set up as TEACHING.md says, released by nbgrader, with a class's submissions."""
    course = tmp_path_factory.mktemp("nbgrader") / "course"
    (course / "source" / LESSON).mkdir(parents=True)
    (course / "nbgrader_config.py").write_text(CONFIG)
    assert all(line in (ROOT / "TEACHING.md").read_text() for line in CONFIG.splitlines()[2:])
    shutil.copy(ROOT / "solutions" / f"{LESSON}.ipynb", course / "source" / LESSON)
    nbgrader(course, "generate_assignment", LESSON)
    for student, answers in CLASS.items():
        hand_in(course, student, answered(course, answers))
    return course


@pytest.fixture(scope="module")
def graded(released, tmp_path_factory) -> Path:
    """The course after `course grade --nbgrader`."""
    course = Path(shutil.copytree(released, tmp_path_factory.mktemp("graded") / "course"))
    assert "nbgrader: 3 written, 0 there from before" in grade(course)
    return course


def rows(course: Path) -> list[tuple]:
    with sqlite3.connect(course / "gradebook.db") as database:
        found = []
        for table, columns in (
            ("grade", "auto_score, manual_score, needs_manual_grade"),
            ("comment", "auto_comment, 0, 0"),
        ):
            found += database.execute(
                f"select s.student_id, b.name, {columns} from {table} g "
                "join submitted_notebook n on n.id = g.notebook_id join base_cell b on b.id = g.cell_id "
                "join submitted_assignment s on s.id = n.assignment_id order by 1, 2"
            ).fetchall()
    database.close()
    return found


def test_it_releases_what_we_release(released):
    theirs = nbformat.read(released / "release" / LESSON / f"{LESSON}.ipynb", 4)
    ours = nbformat.read(ROOT / "exercises" / f"{LESSON}.ipynb", 4)
    assert [cell.source for cell in theirs.cells] == [cell.source for cell in ours.cells]


def test_it_validates_right_answers_and_no_others(released):
    right, untouched = (f"submitted/{student}/{LESSON}/{LESSON}.ipynb" for student in ("ann", "carl"))
    assert "Success! Your notebook passes all the tests." in nbgrader(released, "validate", right)
    assert "first_gradient: not attempted" in nbgrader(released, "validate", untouched)


def test_its_own_autograding_gives_the_same_grades_and_notebooks(released, graded, tmp_path):
    theirs = Path(shutil.copytree(released, tmp_path / "course"))
    nbgrader(theirs, "autograde", LESSON)
    assert rows(theirs) == rows(graded)
    right = {"ann": points_of(), "bob": {"first_gradient": points_of()["first_gradient"]}, "carl": {}}
    expected = {(who, f"check_{name}"): given.get(name, 0) for who, given in right.items() for name in points_of()}
    assert {row[:2]: row[2] for row in rows(graded) if row[:2] in expected} == expected
    for student in CLASS:
        path = Path("autograded", student, LESSON, f"{LESSON}.ipynb")
        their_cells, our_cells = (nbformat.read(course / path, 4).cells for course in (theirs, graded))
        assert [cell.source for cell in our_cells] == [cell.source for cell in their_cells]
        marks = [[cell.metadata.get("nbgrader") for cell in cells] for cells in (our_cells, their_cells)]
        assert marks[0] == marks[1]


def test_it_exports_and_tells_what_we_graded_and_what_a_person_did(graded, tmp_path):
    from nbgrader.api import Gradebook

    course = Path(shutil.copytree(graded, tmp_path / "course"))
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", "autograd") as book:
        given = book.find_grade("check_slope", LESSON, LESSON, "bob")
        given.manual_score, given.needs_manual_grade = 0.5, False
        book.find_comment("slope", LESSON, LESSON, "bob").manual_comment = "The idea is right."
        book.db.commit()
    again = answered(course, {"slope": UNSAFE})
    again.cells += [
        new_markdown_cell(HTML),
        new_markdown_cell(f"[x](javascript:alert(3))\n\n- {HTML}"),
        new_raw_cell(HTML),
    ]
    again.cells[1].outputs = [new_output("display_data", {"text/html": HTML})]
    hand_in(course, "bob", again)
    assert "nbgrader: 1 written, 2 there from before" in grade(course)
    nbgrader(course, "export", "--to", "grades.csv")
    with (course / "grades.csv").open(newline="") as file:
        scores = {row["student_id"]: (row["score"], row["max_score"]) for row in csv.DictReader(file)}
    most = f"{total_of():.1f}"
    assert scores == {"ann": (most, most), "bob": ("0.5", most), "carl": ("0.0", most)}
    nbgrader(course, "generate_feedback", LESSON)
    ann, bob = (
        (course / "feedback" / name / LESSON / f"{LESSON}.html").read_text(encoding="utf-8") for name in ("ann", "bob")
    )
    assert "✔ slope: correct" in ann
    assert f"(Score: 0.5 / {most})" in bob
    assert "✘ slope: error" in bob
    assert "Your code raised ValueError: &lt;script&gt;" in bob
    assert "The idea is right." in bob
    for unsafe in ("<script>alert", "<img src=x", 'href="javascript:'):
        assert unsafe not in bob
    assert "&lt; script&gt;alert(2)" in bob
