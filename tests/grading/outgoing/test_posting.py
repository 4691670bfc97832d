"""Scores in nbgrader's gradebook and notebooks in its folder: all or nothing, and never over a person's work."""

import os
import random
import shutil
import signal
import sqlite3
import time
from datetime import datetime
from pathlib import Path

import nbformat
import pytest

from course_utils.grading.intake.classroom import ClassroomError, handed_in, open_classroom
from course_utils.grading.outgoing import posting
from course_utils.grading.outgoing.converting import Converter, tried
from course_utils.grading.outgoing.posting import Posted, post
from course_utils.grading.submission import ExerciseResult, Result
from tests.grading.nbgrader_course import LESSON, RIGHT, answered, hand_in, make_course
from tests.grading.submissions import points_of, total_of

FIRST = next(iter(points_of()))

ESSAY = {
    "cell_type": "markdown",
    "id": "essay",
    "source": "Write here.",
    "metadata": {
        "nbgrader": {
            **{"schema_version": 3, "grade_id": "essay", "grade": True, "solution": True, "locked": False},
            **{"task": False, "points": 4},
        }
    },
}


class InThisProcess(Converter):
    """As the converter, without a process, which takes seconds to start."""

    def converted(self, texts):
        return [tried(text) for text in texts]


@pytest.fixture(autouse=True)
def converter(monkeypatch):
    monkeypatch.setattr(posting, "Converter", InThisProcess)


@pytest.fixture
def course(tmp_path):
    return make_course(tmp_path / "c")


def result(student: str, first: str = "correct", others: str = "incorrect", status: str = "graded") -> Result:
    rows = tuple(
        ExerciseResult(name, outcome, points * float(outcome == "correct"), points, (), (f"{name} said.",), 0.1)
        for name, points in points_of().items()
        for outcome in (first if name == FIRST else others,)
    )
    return Result(student, LESSON, "p", status, sum(row.score for row in rows), total_of(), 0.1, rows, "Why.")


def posted(course: Path, *results: Result) -> Posted:
    room = open_classroom(course)
    return post(room, handed_in(room), {(one.student, one.assignment): one for one in results})


def grades(course: Path, what: str = "g.auto_score, g.manual_score, g.extra_credit, g.needs_manual_grade") -> dict:
    query = (
        f"select s.student_id, b.name, {what} from grade g join submitted_notebook n on n.id = g.notebook_id "
        "join submitted_assignment s on s.id = n.assignment_id join base_cell b on b.id = g.cell_id order by 1, 2"
    )
    with sqlite3.connect(course / "gradebook.db") as database:
        rows = database.execute(query).fetchall()
    database.close()
    return {(row[0], row[1].removeprefix("check_")): row[2:] for row in rows}


def state(course: Path) -> tuple:
    """All that a teacher can see, without the random keys of rows."""
    with sqlite3.connect(course / "gradebook.db") as database:
        rows = {
            "student": database.execute("select id from student order by 1").fetchall(),
            "submitted": database.execute(
                "select student_id, timestamp from submitted_assignment order by 1"
            ).fetchall(),
            "comments": database.execute(
                "select s.student_id, b.name, c.auto_comment, c.manual_comment from comment c "
                "join submitted_notebook n on n.id = c.notebook_id join base_cell b on b.id = c.cell_id "
                "join submitted_assignment s on s.id = n.assignment_id order by 1, 2"
            ).fetchall(),
        }
    database.close()
    files = {
        path.relative_to(course): path.read_bytes() for path in (course / "autograded").rglob("*") if path.is_file()
    }
    return rows, grades(course), files


def test_scores_and_notebooks_arrive_and_then_nothing_is_to_do(course):
    for student in ("ada", "bob"):
        hand_in(course, student, answered(course, RIGHT), stamp="2026-01-02 03:04:05 UTC" * (student == "ada"))
    ada, bob = result("ada"), result("bob", "incorrect", "not attempted")
    assert posted(course, ada, bob) == Posted(2, 0, ())
    nothing = {(student, name): (0.0, None, None, 0) for student in ("ada", "bob") for name in points_of()}
    assert grades(course) == nothing | {("ada", FIRST): (points_of()[FIRST], None, None, 0)}
    folder = course / "autograded" / "ada" / LESSON
    nbformat.validate(nbformat.read(folder / f"{LESSON}.ipynb", 4))
    assert (folder / "timestamp.txt").read_text() == "2026-01-02 03:04:05 UTC"
    assert (folder / f"{LESSON}.ipynb").stat().st_mode & 0o777 == 0o444
    before = state(course)
    assert posted(course, ada, bob) == Posted(0, 2, ())
    assert state(course) == before


def test_nbgraders_own_interface_sees_it(course):
    from nbgrader.apps.api import NbGraderAPI

    hand_in(course, "ada", answered(course, RIGHT), stamp="2026-01-02 03:04:05 UTC")
    hand_in(course, "bob", "{")
    assert posted(course, result("ada"), result("bob", status="unreadable")).written == 1
    room = open_classroom(course)
    api = NbGraderAPI(room.directory, config=room.config)
    assert api.get_autograded_students(LESSON) == {"ada"}
    with api.gradebook as book:
        found = book.find_submission(LESSON, "ada")
        assert (found.score, found.max_score, found.needs_manual_grade) == (points_of()[FIRST], total_of(), False)
        assert found.timestamp == datetime(2026, 1, 2, 3, 4, 5)
        assert book.find_submission_notebook(LESSON, LESSON, "ada").failed_tests


def test_a_persons_work_survives_a_resubmission(course):
    from nbgrader.api import Gradebook

    hand_in(course, "ada", answered(course, RIGHT))
    posted(course, result("ada"))
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", "autograd") as book:
        grade = book.find_grade("check_slope", LESSON, LESSON, "ada")
        grade.manual_score, grade.extra_credit, grade.needs_manual_grade = 0.5, 0.25, False
        book.find_comment("slope", LESSON, LESSON, "ada").manual_comment = "Nearly."
        book.db.commit()
    assert posted(course, result("ada")) == Posted(0, 1, ())
    assert grades(course)["ada", "slope"] == (0.0, 0.5, 0.25, 0), "nothing new asks for no second look"
    hand_in(course, "ada", answered(course, {}))
    assert posted(course, result("ada", "not attempted", "correct")).written == 1
    assert grades(course)["ada", "slope"] == (1.0, 0.5, 0.25, 1), "a manual score is to be looked at again"
    assert grades(course)["ada", "first_gradient"] == (0.0, None, None, 0)
    comments = {row[1]: row[2:] for row in state(course)[0]["comments"]}
    assert comments == dict.fromkeys(points_of(), ("No response.", None)) | {"slope": ("No response.", "Nearly.")}


def test_written_answers_wait_for_a_person(tmp_path):
    course = make_course(tmp_path / "c", extra=(ESSAY,))
    hand_in(course, "ada", answered(course, {**RIGHT, "essay": "My words."}))
    hand_in(course, "bob", answered(course, RIGHT))
    posted(course, result("ada"), result("bob"))
    assert grades(course)["ada", "essay"] == (None, None, None, 1)
    assert grades(course)["bob", "essay"] == (0.0, None, None, 0)


def test_what_cannot_be_read_has_no_score_and_keeps_what_it_had(course):
    hand_in(course, "ada", answered(course, RIGHT))
    posted(course, result("ada"))
    before = state(course)
    path = hand_in(course, "ada", "{")
    hand_in(course, "bob", "")
    told = posted(course, result("ada", status="unreadable"), result("bob", status="unreadable"))
    assert told.written == 0
    assert told.left == (f"{path}: Why.", f"{course}/submitted/bob/{LESSON}/{LESSON}.ipynb: Why.")
    assert state(course) == before


def test_a_file_that_was_changed_while_it_was_graded_is_not_written(course):
    hand_in(course, "ada", answered(course, RIGHT))
    room = open_classroom(course)
    handed = handed_in(room)
    hand_in(course, "ada", answered(course, {}))
    told = post(room, handed, {("ada", LESSON): result("ada")})
    assert told.written == 0
    assert "changed meanwhile" in told.left[0]


def test_a_crash_is_no_zero(course):
    hand_in(course, "ada", answered(course, RIGHT))
    posted(course, result("ada", "correct", "error", status="crashed"))
    assert grades(course)["ada", "slope"] == (None, None, None, 1)
    assert grades(course)["ada", "first_gradient"] == (1.0, None, None, 0)


def test_a_notebook_that_was_not_handed_in_has_no_points(course):
    from nbgrader.api import Gradebook

    hand_in(course, "ada", answered(course, RIGHT))
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", "autograd") as book:
        book.add_notebook("second", LESSON)
        book.add_grade_cell("second_test", "second", LESSON, max_score=3, cell_type="code")
        book.add_source_cell("second_test", "second", LESSON, cell_type="code", source="assert 1", locked=True)
    posted(course, result("ada"))
    assert grades(course)["ada", "second_test"] == (0.0, None, None, 0)
    (course / "submitted" / "bob" / LESSON).mkdir(parents=True)
    for name in (LESSON, "second"):
        shutil.copy(
            course / "release" / LESSON / f"{LESSON}.ipynb", course / "submitted/bob" / LESSON / f"{name}.ipynb"
        )
    posted(course, result("ada"), result("bob"))
    assert grades(course)["bob", "second_test"] == (None, None, None, 1), "it is not ours to grade"


def test_nbgraders_late_penalty_is_given_where_one_is_configured(course):
    from nbgrader.api import Gradebook

    with (course / "nbgrader_config.py").open("a") as file:
        file.write("c.LateSubmissionPlugin.penalty_method = 'zero'\n")
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", "autograd") as book:
        book.update_or_create_assignment(LESSON, duedate=datetime(2026, 1, 1))
    hand_in(course, "ada", answered(course, RIGHT), stamp="2026-01-02 03:04:05 UTC")
    posted(course, result("ada"))
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", "autograd") as book:
        assert book.find_submission(LESSON, "ada").late_submission_penalty == 1.0


class Killed(BaseException):
    pass


def consistent(course: Path, old: dict, new: dict) -> None:
    """What nbgrader calls autograded has the notebook and the scores of one and the same submission."""
    for student in ("ada", "bob"):
        path = course / "autograded" / student / LESSON / f"{LESSON}.ipynb"
        if path.parent.exists():
            expected = old if path.read_bytes() == old["files"].get(student) else new
            assert path.read_bytes() == expected["files"][student]
            assert {key: row for key, row in grades(course).items() if key[0] == student} == expected["grades"][student]


def seen(course: Path) -> dict:
    files = {student: course / "autograded" / student / LESSON / f"{LESSON}.ipynb" for student in ("ada", "bob")}
    rows = {student: {key: row for key, row in grades(course).items() if key[0] == student} for student in files}
    return {"files": {student: path.read_bytes() for student, path in files.items() if path.exists()}, "grades": rows}


STEPS = ("_set_aside", "replace_file", "_commit", "_penalise", "write", "Path.rename")


@pytest.mark.parametrize("first", [True, False], ids=["first submission", "resubmission"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_ended_at_any_step_nothing_half_is_seen_and_the_next_run_completes_it(
    tmp_path, monkeypatch, step, after, first
):
    base = make_course(tmp_path / "base")
    for student in ("ada", "bob"):
        hand_in(base, student, answered(base, {}), stamp="2026-01-01 00:00:00 UTC")
    if not first:
        posted(base, result("ada", "incorrect"), result("bob", "incorrect"))
        for student in ("ada", "bob"):
            hand_in(base, student, answered(base, RIGHT), stamp="2026-01-02 00:00:00 UTC")
    results = result("ada", "correct", "correct"), result("bob")
    old = seen(base)
    whole = Path(shutil.copytree(base, tmp_path / "whole"))
    posted(whole, *results)
    owner, name = (Path, "rename") if step == "Path.rename" else (posting, step)
    real = getattr(owner, name)
    for nth in range(1, 9):
        course = Path(shutil.copytree(base, tmp_path / f"{nth}"))
        calls = 0

        def ended(*arguments, nth=nth):
            nonlocal calls
            calls += 1
            if calls == nth and not after:
                raise Killed
            value = real(*arguments)
            if calls == nth:
                raise Killed
            return value

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, ended)
            try:
                posted(course, *results)
            except Killed:
                consistent(course, old, seen(whole))
            else:
                assert calls < nth
                break
        posted(course, *results)
        assert state(course) == state(whole)
    assert nth > 1


def test_killed_at_random_moments_it_ends_in_the_same_state(tmp_path):
    rng = random.Random(5)
    base = make_course(tmp_path / "base")
    for number in range(60):
        hand_in(base, f"s{number:02}", answered(base, RIGHT))
    whole = Path(shutil.copytree(base, tmp_path / "whole"))
    results = [result(f"s{number:02}", "correct", "correct") for number in range(60)]
    start = time.monotonic()
    posted(whole, *results)
    took = time.monotonic() - start
    missing = 0
    for nth in range(10):
        course = Path(shutil.copytree(base, tmp_path / f"{nth}"))
        child = os.fork()
        if not child:
            try:
                posted(course, *results)
            finally:
                os._exit(0)
        time.sleep(rng.uniform(0, took))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        there = {path.parent.name for path in (course / "autograded").glob(f"*/{LESSON}")}
        assert there <= {student for (student, _), row in grades(course).items() if row[0]}
        missing += len(there) < 60
        posted(course, *results)
        assert state(course) == state(whole)
    assert missing, "it was always too late to kill it"


def test_other_files_in_the_folder_stay(course):
    hand_in(course, "ada", answered(course, RIGHT))
    posted(course, result("ada"))
    (course / "autograded" / "ada" / LESSON / "notes.txt").write_text("kept")
    posted(course, result("ada", "incorrect"))
    assert (course / "autograded" / "ada" / LESSON / "notes.txt").read_text() == "kept"


def test_a_gradebook_that_is_busy_is_told(course, monkeypatch):
    monkeypatch.setattr("course_utils.grading.intake.classroom.WAIT_SECONDS", 0.1)
    hand_in(course, "ada", answered(course, RIGHT))
    with sqlite3.connect(course / "gradebook.db", isolation_level=None) as database:
        database.execute("begin exclusive")
        with pytest.raises(ClassroomError, match=r"database is locked\. If formgrader is busy"):
            posted(course, result("ada"))
        database.execute("rollback")
    database.close()
    assert posted(course, result("ada")).written == 1


def test_what_cannot_be_written_of_one_submission_is_left_and_the_others_are_written(course):
    for student in ("ada", "bob"):
        hand_in(course, student, answered(course, RIGHT))
    (course / "autograded").mkdir()
    (course / "autograded" / "ada").write_text("a file")
    both = [result("ada"), result("bob")]
    first = posted(course, *both)
    assert (first.written, first.unchanged) == (1, 0)
    (said,) = first.left
    assert "autograded/ada" in said
    assert said.endswith("cannot be written: Not a directory.")
    assert (course / "autograded" / "bob" / LESSON / f"{LESSON}.ipynb").exists()
    (course / "autograded" / "ada").unlink()
    again = posted(course, *both)
    assert (again.written, again.unchanged, again.left) == (1, 1, ())


def test_where_the_notebook_of_one_submission_cannot_be_made_the_others_are(course, monkeypatch):
    def fails(cells, released, result, converted):
        if result.student == "ada":
            raise RecursionError("too deep")
        return real(cells, released, result, converted)

    real = posting.autograded
    monkeypatch.setattr(posting, "autograded", fails)
    for student in ("ada", "bob"):
        hand_in(course, student, answered(course, RIGHT))
    carried = posted(course, result("ada"), result("bob"))
    assert carried.written == 1
    assert carried.left[0].endswith("its notebook could not be made: RecursionError: too deep")


def test_one_that_takes_a_converter_long_keeps_nobody_waiting(course, monkeypatch):
    """Its cell is shown as code, and who was prepared before is written before."""
    monkeypatch.setattr(posting, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(posting, "Converter", Converter)
    evil = answered(course, RIGHT)
    evil.cells += [nbformat.v4.new_markdown_cell("# a" + " " * 49_990 + "b"), nbformat.v4.new_markdown_cell("kind")]
    for student, notebook in {"ada": answered(course, RIGHT), "eve": evil, "zoe": answered(course, RIGHT)}.items():
        hand_in(course, student, notebook)
    there = []
    real = posting._prepared

    def prepared(room, group, *others):
        there.append([path.parent.name for path in (course / "autograded").glob(f"*/{LESSON}")])
        return real(room, group, *others)

    monkeypatch.setattr(posting, "_prepared", prepared)
    before = time.monotonic()
    assert posted(course, *map(result, ("ada", "eve", "zoe"))) == Posted(3, 0, ())
    assert time.monotonic() - before < 60, "seconds that no slow machine needs"
    assert [sorted(one) for one in there] == [[], ["ada"], ["ada", "eve"]]
    cells = nbformat.read(course / "autograded" / "eve" / LESSON / f"{LESSON}.ipynb", 4).cells
    assert [cell.cell_type for cell in cells if cell.source in (evil.cells[-2].source, "kind")] == ["code", "code"]
    assert cells[0].cell_type == "markdown"
