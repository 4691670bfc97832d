"""The command `course`."""

import copy
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from course_utils import cli, notebooks
from course_utils.grading.gradebook import Gradebook
from course_utils.grading.submission import Result, Submission
from tests.test_notebooks import ANSWER, CHECK, write

ROOT = Path(__file__).parents[1]


@pytest.fixture
def small_course(tmp_path, monkeypatch) -> Path:
    """A course of a lesson and a master. A notebook that ran before, with the same bytes, gives what it gave then."""
    known = {}
    execute = notebooks.run

    def run_once(path: Path) -> object:
        key = path, path.read_bytes()
        if key not in known:
            known[key] = execute(path)
        return copy.deepcopy(known[key])

    monkeypatch.setattr(notebooks, "run", run_once)
    monkeypatch.setattr(cli, "ROOT", tmp_path)
    write(tmp_path / "notebooks" / "00_a.ipynb", "3 + 4")
    write(tmp_path / "solutions" / "00_a.ipynb", "from course_utils import check", ANSWER, CHECK)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli.course, arguments)


def test_build_writes_then_finds_nothing_to_do_and_fails_for_what_was_edited(small_course):
    first = run("build")
    assert first.exit_code == 0
    assert "wrote: notebooks/00_a.ipynb" in first.output
    assert "3 notebooks built, 3 changed." in first.output
    assert "3 notebooks built, 0 changed." in run("build").output
    assert run("build", "--check").exit_code == 0

    released = small_course / "exercises" / "00_a.ipynb"
    edited = released.read_bytes().replace(b"...", b"8")
    released.write_bytes(edited)
    result = run("build", "--check")
    assert result.exit_code == 1
    assert "differs: exercises/00_a.ipynb" in result.output
    assert "run `course build` and commit what it writes" in result.output
    assert released.read_bytes() == edited


def test_build_reports_a_broken_master(small_course):
    write(small_course / "solutions" / "00_a.ipynb", "1 / 0")
    result = run("build")
    assert result.exit_code == 1
    assert "cell start: raised ZeroDivisionError" in result.output
    assert "Nothing was written." in result.output
    assert not (small_course / "exercises").exists()


def test_help_names_what_can_be_graded():
    text = " ".join(run("grade", "-h").output.split())
    assert "Grade submitted notebooks: files, folders, an nbgrader course, or zips from Moodle and Canvas." in text
    assert "--nbgrader DIRECTORY Grade what was handed in to this nbgrader course" in text


def test_misuse_exits_with_2():
    assert run("build", "--wrong").exit_code == 2
    assert run("nothing").exit_code == 2
    assert run("lab", "--port", "many").exit_code == 2


def test_lab_without_the_course(small_course):
    result = run("lab")
    assert result.exit_code == 1
    assert "00_start_here.ipynb is missing: run `course lab` from a copy of the whole course" in result.output


def test_the_command_and_the_module_are_the_same():
    by_module = subprocess.run([sys.executable, "-m", "course_utils", "-h"], capture_output=True, text=True, check=True)
    assert "Open the course, build its notebooks, or grade a class." in by_module.stdout
    command = shutil.which("course", path=str(Path(sys.executable).parent))
    assert command, "the command `course` is not installed"
    by_name = subprocess.run([command, "-h"], capture_output=True, text=True, check=True)
    assert by_name.stdout.partition("\n")[2] == by_module.stdout.partition("\n")[2]


@pytest.mark.skipif(sys.platform == "win32", reason="stops the server by its process group, which Windows lacks")
def test_lab_serves_the_first_lesson_and_prints_the_address(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folders = {f"JUPYTER_{kind}_DIR": str(tmp_path / kind) for kind in ("CONFIG", "DATA", "RUNTIME")}
    environment = {**os.environ, **folders}
    environment.pop("DISPLAY", None)
    log = tmp_path / "log"
    with log.open("w") as output:
        command = [sys.executable, "-m", "course_utils", "lab", f"--port={port}"]
        server = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while "token=" not in log.read_text() and time.monotonic() < deadline and server.poll() is None:
            time.sleep(0.2)
        text = log.read_text()
        url = next(word for word in text.split() if word.startswith(f"http://127.0.0.1:{port}/lab"))
        assert "/lab/tree/notebooks/00_start_here.ipynb" in url
        with urllib.request.urlopen(url) as page:
            assert page.status == 200
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


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
        ("ann", "graded", 2.0, 2.0),
        ("bob", "graded", 0.0, 2.0),
    ]
    assert [one["outcome"] for one in rows[1]["exercises"]] == ["not attempted", "not attempted"]
    assert (tmp_path / "r.csv").read_text().startswith("student,")
    assert "0 graded, 2 known from before" in run("grade", "submitted").output
    assert "3 pages written" in run("report", "grades.sqlite").output


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
