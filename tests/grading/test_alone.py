"""Two runs on one database: the second is told, and the lock goes with the process that held it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from course_utils import cli
from course_utils.grading.alone import Busy, alone
from tests.grading.nbgrader_course import make_course

ROOT = Path(__file__).parents[2]
HOLDER = """
import sys, time
from pathlib import Path
from course_utils.grading.alone import alone
with alone(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(99)
"""


def holder(database: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLDER, str(database)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_run_is_told_and_a_killed_one_leaves_no_lock(tmp_path: Path) -> None:
    database = tmp_path / "grades.sqlite"
    with holder(database) as first:
        said = f"another `course grade` \\(process {first.pid}\\) is grading into it. Wait for its end, or stop it."
        with pytest.raises(Busy, match=said), alone(database):
            pass
        first.send_signal(signal.SIGKILL)
        first.wait()
        with alone(database):
            pass
    with alone(database):
        pass


def test_one_database_has_one_lock_whatever_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "other.sqlite").symlink_to(tmp_path / "grades.sqlite")
    with alone(tmp_path / "grades.sqlite"):
        with pytest.raises(Busy), alone(tmp_path / "other.sqlite"):
            pass
        with alone(tmp_path / "another.sqlite"):
            pass


def test_no_process_that_is_started_meanwhile_holds_the_lock(tmp_path: Path) -> None:
    with alone(tmp_path / "grades.sqlite"):
        command = [sys.executable, "-c", "print(flush=True); input()"]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False)
        assert child.stdout is not None
        assert child.stdout.readline() == b"\n"
    with child, alone(tmp_path / "grades.sqlite"):
        child.kill()


def test_where_nothing_may_be_written_nothing_is_kept_off(tmp_path: Path) -> None:
    with alone(tmp_path / "no folder" / "grades.sqlite"), alone(tmp_path / "no folder" / "grades.sqlite"):
        pass
    (tmp_path / "grades.sqlite.lock").symlink_to(tmp_path / "precious")
    (tmp_path / "precious").write_text("everybody's")
    with alone(tmp_path / "grades.sqlite"):
        pass
    assert (tmp_path / "precious").read_text() == "everybody's"


def test_the_command_says_so_before_anything_is_graded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = str(ROOT / "exercises" / "00_start_here.ipynb")
    with alone(tmp_path / "grades.sqlite"):
        busy = CliRunner().invoke(cli.course, ["grade", notebook])
    assert busy.exit_code == 1
    assert "grades.sqlite: another `course grade` (process" in busy.output
    assert not (tmp_path / "grades.sqlite").exists()


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    made = make_course(tmp_path / "course")
    folder = made / "submitted" / "ada" / "00_start_here"
    folder.mkdir(parents=True)
    (folder / "00_start_here.ipynb").write_bytes((ROOT / "exercises" / "00_start_here.ipynb").read_bytes())
    return made


def test_so_it_does_for_an_nbgrader_course_whatever_the_other_run_keeps_its_results_in(course: Path) -> None:
    with alone(course / "gradebook.db"):
        busy = CliRunner().invoke(cli.course, ["grade", "--nbgrader", str(course), "--db", "mine.sqlite"])
    assert busy.exit_code == 1
    assert "gradebook.db: another `course grade` (process" in busy.output


def test_a_gradebook_of_nbgraders_that_may_only_be_read_is_told_before_anything_is_graded(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may = os.access
    book = course / "gradebook.db"
    monkeypatch.setattr(os, "access", lambda path, *how, **more: path != book and may(path, *how, **more))
    told = CliRunner().invoke(cli.course, ["grade", "--nbgrader", str(course), "--db", "mine.sqlite"])
    assert told.exit_code == 1
    assert "gradebook.db: this gradebook of nbgrader's may only be read. Make it writable first." in told.output
    assert not Path("mine.sqlite").exists()
