"""The command `course`."""

import copy
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from course_utils import cli, notebooks
from course_utils.notebooks import building
from tests.test_notebooks import ANSWER, CHECK, write


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

    monkeypatch.setattr(building, "run", run_once)
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


def test_misuse_exits_with_2():
    assert run("build", "--wrong").exit_code == 2
    assert run("nothing").exit_code == 2
    assert run("lab", "--port", "many").exit_code == 2


def test_lab_without_the_course(small_course):
    result = run("lab")
    assert result.exit_code == 1
    assert "00_start_here.ipynb is missing: run `course lab` from a copy of the whole course" in result.output


@pytest.mark.parametrize("module", ["course_utils", "course_utils.cli"])
def test_the_command_and_the_module_are_the_same(module):
    by_module = subprocess.run([sys.executable, "-m", module, "-h"], capture_output=True, text=True, check=True)
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
    environment = {**os.environ, **folders, "COURSE_COPY": str(tmp_path / "mine")}
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
        assert "/tree/notebooks/00_start_here.ipynb" in url
        with urllib.request.urlopen(url) as page:
            assert page.status == 200
        assert (tmp_path / "mine" / "notebooks" / "00_start_here.ipynb").exists()
        server.terminate()  # this one process, and no group: what is told to end must leave nothing behind
        server.wait(30)
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(url)
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)


def test_help_has_whole_sentences_in_80_columns_and_an_example_for_each_command():
    text = CliRunner().invoke(cli.course, ["--help"], terminal_width=80).output
    rows = text.partition("Commands:\n")[2].splitlines()
    context = click.Context(cli.course)
    commands = {name: cli.course.get_command(context, name) for name in cli.course.list_commands(context)}
    assert [row.split()[0] for row in rows] == list(commands)
    assert all(len(row) <= 80 and row.endswith(".") and not row.endswith("...") for row in rows)
    for name, command in commands.items():
        page = CliRunner().invoke(command, ["--help"], terminal_width=80).output
        assert f"Example: course {name}" in page
        assert max(map(len, page.splitlines())) <= 80
        options = [it for it in command.params if isinstance(it, click.Option)]
        assert not [it.name for it in options if not (it.help or "").endswith(".") and "as in" not in (it.help or "")]


def test_release_copies_what_students_get(tmp_path):
    done = run("release", "03", "--to", str(tmp_path / "students"))
    assert done.exit_code == 0
    given = {path.relative_to(tmp_path / "students").as_posix() for path in (tmp_path / "students").rglob("*.ipynb")}
    assert {"notebooks/03_graph_freeing.ipynb", "exercises/03_graph_freeing.ipynb"} < given
    assert any(name.startswith("notebooks/deeper/03") for name in given)
    lesson = notebooks.read(tmp_path / "students" / "notebooks" / "03_graph_freeing.ipynb")
    assert not [cell for cell in lesson.cells if cell.get("outputs")]
    run("release", "03", "--to", str(tmp_path / "short"), "--without-deeper")
    assert not (tmp_path / "short" / "notebooks" / "deeper").exists()
    assert "no notebook of the course begins with '99'" in run("release", "99", "--to", str(tmp_path)).output
