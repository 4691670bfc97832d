"""What a machine offers is tried from the strongest on, and what starts there holds no secret of the session's."""

import subprocess
import sys
from pathlib import Path

import pytest

from course_utils.grading.controller import machine
from course_utils.grading.wire import MODES


def test_available_tries_the_modes_from_the_strongest(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Done:
        returncode = 1

    monkeypatch.setattr(machine.subprocess, "run", lambda command, **rest: asked.append(command[-1]) or Done)
    assert machine.available() == "none"
    assert [mode for mode, text in zip(MODES[:-1], asked, strict=True) if repr(mode) in text] == [*MODES[:-1]]


def test_the_environment_of_children_holds_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "secret")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    environment = machine.child_environment()
    assert "secret" not in environment.values()
    assert environment["PYTHONPATH"].endswith(":/somewhere")
    assert environment["OMP_NUM_THREADS"] == "1"


def test_what_starts_there_writes_nothing_into_the_course(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "library.py").write_text("x = 1\n")
    subprocess.run([sys.executable, "-P", "-c", "import library"], env=machine.child_environment(), check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["library.py"]
