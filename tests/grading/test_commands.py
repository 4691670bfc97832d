"""The commands that grade: what they print, write, and refuse."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from course_utils import cli
from course_utils.grading import commands, grade
from course_utils.grading.gradebook import Gradebook
from course_utils.grading.submission import Result, Submission
from tests.grading.submissions import points_of, total_of

ROOT = Path(__file__).parents[2]


def run(*arguments):
    return CliRunner().invoke(cli.course, arguments)


def test_help_names_what_can_be_graded():
    text = " ".join(run("grade", "-h").output.split())
    assert "Grade submitted notebooks: files, folders, an nbgrader course, or zips from Moodle and Canvas." in text
    assert "--nbgrader DIRECTORY Grade what was handed in to this nbgrader course" in text


def test_a_class_is_graded_reported_and_not_graded_twice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for student, source in (("ann", ROOT / "solutions"), ("bob", ROOT / "exercises")):
        folder = tmp_path / "submitted" / student / "00_start_here"
        folder.mkdir(parents=True)
        shutil.copy(source / "00_start_here.ipynb", folder)
    result = run("grade", "submitted", "--json", "r.json", "--csv", "r.csv", "--jobs", "1")
    if "no sandbox" in result.output.lower():
        pytest.skip("this machine forbids every kind of sandbox that the grader knows")
    assert result.exit_code == 0, result.output
    assert "2 graded, 0 known from before" in result.output
    rows = json.loads((tmp_path / "r.json").read_text())["submissions"]
    assert [(row["student"], row["status"], row["score"], row["points"]) for row in rows] == [
        ("ann", "graded", total_of(), total_of()),
        ("bob", "graded", 0.0, total_of()),
    ]
    assert [one["outcome"] for one in rows[1]["exercises"]] == ["not attempted"] * len(points_of())
    assert (tmp_path / "r.csv").read_text().startswith("student,")
    assert "0 graded, 2 known from before" in run("grade", "submitted").output
    assert "3 pages written" in run("report", "grades.sqlite").output


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is graded")
@pytest.mark.parametrize("make", [os.openpty, os.pipe], ids=["a terminal", "a pipe"])
def test_progress_is_shown_before_pytorch_is_there(make, tmp_path):
    shutil.copy(ROOT / "exercises" / "00_start_here.ipynb", tmp_path)
    ours, theirs = make()
    # A torch that says when it is imported, and fails. The row quotes the last line of the process that imports it.
    (tmp_path / "torch.py").write_text("raise ImportError('IMPORTED')\n")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}", "TERM": "xterm", "COLUMNS": "200"}
    command = [sys.executable, "-m", "course_utils", "grade", str(tmp_path / "00_start_here.ipynb")]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, cwd=tmp_path, env=environment):
        os.close(theirs)
        shown = b""
        with (
            contextlib.suppress(OSError),
            os.fdopen(ours, "rb", buffering=0) as stream,
        ):  # a terminal ends with an error
            while part := stream.read(4096):
                shown += part
    before, imported, _ = shown.decode().partition("IMPORTED")
    assert "loading PyTorch, reading what was handed in" in before
    assert imported, before


def test_of_one_notebook_each_verdict_is_told_before_the_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("grade", str(ROOT / "solutions" / "00_start_here.ipynb"))
    if "no sandbox" in result.output.lower():
        pytest.skip("this machine forbids every kind of sandbox that the grader knows")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    told = [f"{name}: correct, {points} of {points}" for name, points in points_of().items()]
    assert lines[: 1 + len(told)] == ["loading PyTorch, reading what was handed in", *told]


def test_what_cannot_be_graded_is_misuse(tmp_path):
    assert run("grade", str(tmp_path / "missing")).exit_code == 2
    nothing = run("grade")
    assert nothing.exit_code == 2
    assert "Name what to grade: notebooks, folders or zips, or an nbgrader course by --nbgrader." in nothing.output
    no_course = run("grade", "--nbgrader", str(tmp_path))
    assert no_course.exit_code == 2
    assert "`nbgrader generate_assignment` makes it" in " ".join(no_course.output.split())
    no_book = tmp_path / "book"
    no_book.write_text("not a database")
    result = run("report", str(no_book), "--out", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert "cannot be used as a gradebook" in result.output


@pytest.fixture
def book(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with Gradebook(Path("grades.sqlite")) as gradebook:
        for student, lesson, score in (("ada", "01_graph_structure", 5.0), ("bob", "02_how_backward_works", 6.0)):
            submission = Submission(student, lesson, f"{student}.ipynb", student)
            gradebook.add(submission, Result(student, lesson, f"{student}.ipynb", "graded", score, 10.0, 0.1, ()))
    Path("canvas.csv").write_text(
        "Student,ID,SIS Login ID,Section,01 (7)\nPoints Possible,,,,10\nA,1,ada,x,\nB,2,bob,x,\n"
    )
    Path("moodle.csv").write_text(
        "Identifier,Full name,Grade,Maximum Grade\nParticipant 1,ada,,10\nParticipant 2,bob,,10\n"
    )
    return Path("grades.sqlite")


def test_scores_are_filled_into_what_platforms_exported(book):
    result = run("export", str(book), "--canvas", "canvas.csv")
    assert result.exit_code == 0, result.output
    assert Path("canvas-graded.csv").read_text() == Path("canvas.csv").read_text().replace("ada,x,", "ada,x,5")
    assert result.output.splitlines() == [
        "B: nothing was handed in.",
        "01_graph_structure: 1 scores in the column '01 (7)'.",
        "1 scores written to canvas-graded.csv",
    ]
    result = run("export", str(book), "--moodle", "moodle.csv", "--lesson", "02", "--out", "new.csv")
    assert result.exit_code == 0, result.output
    assert "Participant 2,bob,6,10" in Path("new.csv").read_text()
    result = run("export", str(book), "--moodle", "moodle.csv", "--lesson", "01", "--column", "Maximum Grade")
    assert "ada,,5\n" in Path("moodle-graded.csv").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "name one of --canvas FILE, --moodle FILE and --github"),
        (("--canvas", "canvas.csv", "--github"), 2, "name one of"),
        (("--canvas", "missing.csv"), 2, "does not exist"),
        (("--canvas", "canvas.csv", "--lesson", "77"), 2, "'77' names no single lesson"),
        (("--canvas", "canvas.csv", "--out", "canvas.csv"), 2, "that is the exported file itself"),
        (("--canvas", "canvas.csv", "--out", "no/x.csv"), 1, "no/x.csv: cannot be written: No such file"),
        (("--canvas", "moodle.csv"), 1, "moodle.csv: it is no gradebook of Canvas"),
        (("--moodle", "moodle.csv"), 1, "moodle.csv: there are results of several lessons. Say which with --lesson"),
        (("--github",), 1, "GITHUB_STEP_SUMMARY is not set"),
    ],
)
def test_what_cannot_be_exported_is_told(book, monkeypatch, arguments, code, words):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    before = {path: path.read_bytes() for path in Path().iterdir()}
    result = run("export", str(book), *arguments)
    assert result.exit_code == code
    assert words in " ".join(result.output.split())
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_elsewhere_than_on_linux_grading_says_what_to_do(platform, tmp_path, monkeypatch):
    notebook = tmp_path / "x.ipynb"
    notebook.write_text("{}")
    monkeypatch.setattr(sys, "platform", platform)
    done = CliRunner().invoke(cli.course, ["grade", str(notebook), "--unsafe"])
    assert done.exit_code == 1
    assert f"this is {platform}. Use a Linux machine, WSL 2" in done.output
    assert "--unsafe, which gives up the sandbox, needs Linux too" in " ".join(done.output.split())


def test_an_autograder_that_cannot_be_made_is_told(tmp_path, monkeypatch):
    done = run("gradescope", "0", "--out", str(tmp_path / "a.zip"))
    assert done.exit_code == 2
    assert "'0' names no single lesson of the course: 00_start_here, 01_graph" in done.output.replace("\n", " ")
    monkeypatch.setattr(commands, "ROOT", tmp_path)
    done = run("gradescope", "00", "--out", str(tmp_path / "a.zip"))
    assert done.exit_code == 1
    assert not (tmp_path / "a.zip").exists()


@pytest.mark.parametrize("seconds", ["nan", "inf", "1e300", "-1", "0", "-inf", "86401"])
def test_a_time_limit_that_is_none_is_misuse(seconds):
    result = run("grade", ".", "--timeout", seconds)
    assert result.exit_code == 2
    assert "is no time limit. Name seconds, from 1 to 86,400, which is a day." in " ".join(result.output.split())


@pytest.fixture
def a_grader(monkeypatch):
    """Grade with what a test puts here, in place of PyTorch."""
    given = {}
    monkeypatch.setattr(grade, "_here", lambda after, jobs: lambda these, *limits: map(given["one"], these))
    return given


def done(one: Submission) -> Result:
    status = "unreadable" if one.unreadable else "graded"
    return Result(one.student, one.assignment, one.path, status, 0.0, 2.0, 0.1, (), one.unreadable)


def test_what_could_not_be_graded_is_listed_at_the_end(a_grader, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a_grader["one"] = done
    for name in ("ada", "b\x1b[2J\u202eob"):
        (tmp_path / "class" / name).mkdir(parents=True)
        shutil.copy(ROOT / "exercises" / "00_start_here.ipynb", tmp_path / "class" / name)
    good = run("grade", "class")
    assert good.exit_code == 0, good.output
    assert "could not be graded" not in good.output
    (tmp_path / "class" / "carol").mkdir()
    bad = run("grade", "class")
    assert bad.exit_code == 1
    assert "1 graded, 2 known from before" in bad.output
    assert bad.output.endswith(
        "1 could not be graded, or not to the end:\n"
        "  carol, no notebook: There is no notebook (.ipynb) in this folder, and no zip.\n"
    )
    assert not {"\x1b", "\u202e"} & set(bad.output)
    assert "b\\x1b[2J\\u202eob" in bad.output


def rows_of(shown: str) -> list[str]:
    """Return the students of the table, as they are printed."""
    return [line.split()[1] for line in shown.splitlines() if line.startswith("\u2502")]


def put(path: Path, data: bytes | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data or (ROOT / "exercises" / "00_start_here.ipynb").read_bytes())


def test_who_hands_in_thousands_of_files_hides_nobody(a_grader, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(grade, "_SHOWN", 10)
    monkeypatch.setattr(grade, "_LISTED", 10)
    a_grader["one"] = done
    for name in ("zoe/nb", "yan/nb"):
        put(tmp_path / "class" / f"{name}.ipynb")
    put(tmp_path / "class" / "zed" / "nb.ipynb", b"{")
    with zipfile.ZipFile(tmp_path / "class" / "mallory.zip", "w") as archive:
        for number in range(2000):
            archive.writestr(f"{number:05}.ipynb", "{}")
    shown = run("grade", "class", "--json", "r.json")
    assert shown.exit_code == 1
    assert len(json.loads(Path("r.json").read_text())["submissions"]) == 104
    assert rows_of(shown.output)[:3] == ["yan", "zoe", "mallory"]
    start = shown.output.index("102 could not be graded, or not to the end:\n")
    lines = [line[:40] for line in shown.output[start:].splitlines()[1:]]
    assert lines == [
        "  mallory, 00000: The file is in no note",
        "  mallory, 00001: The file is in no note",
        "  mallory, 00002: The file is in no note",
        "  mallory, and 98 more",
        "  zed, nb: The file is no notebook, or w",
    ]
    told = [one["reason"] for one in json.loads(Path("r.json").read_text())["submissions"]]
    assert any(reason.startswith("This student handed in 2,000 notebooks and zips.") for reason in told)


def test_a_zip_that_is_named_alone_takes_no_other_files_place(a_grader, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a_grader["one"] = done
    for name in ("ada", "zoe"):
        put(tmp_path / "sub" / name / "nb.ipynb")
    (tmp_path / "sub" / "mallory").mkdir()
    with zipfile.ZipFile(tmp_path / "sub" / "mallory" / "m.zip", "w") as archive:
        for name in ("ada", "zoe", "mallory"):
            archive.writestr(f"{name}/nb.ipynb", (ROOT / "solutions" / "00_start_here.ipynb").read_bytes())
    assert run("grade", "sub").exit_code == 1, "three notebooks of mallory's"
    with Gradebook(Path("grades.sqlite")) as book:
        before = [one for one in book.results() if one.student != "mallory"]
    late = run("grade", "sub/mallory/m.zip", "--json", "r.json")
    assert late.exit_code == 1
    lines = [
        f"sub/mallory/m.zip/{name}/nb.ipynb: {name}, 00_start_here is from sub/{name}/nb.ipynb"
        for name in ("ada", "zoe")
    ]
    assert late.output.endswith(
        "2 not graded, as the results that are kept are from files that lie elsewhere:\n"
        + "".join(f"  {line}\n" for line in lines)
        + "--replace grades them in place of those; another --db keeps both.\n"
    )
    assert "1 graded, 0 known from before" in late.output
    assert json.loads(Path("r.json").read_text())["run"]["not_graded"] == lines
    with Gradebook(Path("grades.sqlite")) as book:
        assert [one for one in book.results() if one.student != "mallory"] == before
    assert "2 graded, 1 known" in run("grade", "sub/mallory/m.zip", "--replace").output
    with Gradebook(Path("grades.sqlite")) as book:
        assert {one.path for one in book.results()} == {
            f"sub/mallory/m.zip/{name}/nb.ipynb" for name in ("ada", "mallory", "zoe")
        }


def test_ctrl_c_says_how_many_are_kept(a_grader, tmp_path, monkeypatch):
    def stops(one: Submission) -> Result:
        if one.student == "c":
            raise KeyboardInterrupt
        return done(one)

    monkeypatch.chdir(tmp_path)
    a_grader["one"] = stops
    for name in "abcd":
        (tmp_path / "class" / name).mkdir(parents=True)
        shutil.copy(ROOT / "exercises" / "00_start_here.ipynb", tmp_path / "class" / name)
    stopped = run("grade", "class")
    assert stopped.exit_code == 130
    assert "stopped: 2 of 4 are graded and kept in grades.sqlite. The same command goes on there." in stopped.output
    a_grader["one"] = done
    assert "2 graded, 2 known from before" in run("grade", "class").output


def test_the_bar_names_elapsed_and_remaining_time(a_grader, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a_grader["one"] = done
    for name in "ab":
        (tmp_path / "class" / name).mkdir(parents=True)
        shutil.copy(ROOT / "exercises" / "00_start_here.ipynb", tmp_path / "class" / name)
    shown = " ".join(run("grade", "class").output.split())
    assert re.search(r"grading .* 2 of 2, \d:\d\d:\d\d elapsed, \d:\d\d:\d\d left", shown), shown
