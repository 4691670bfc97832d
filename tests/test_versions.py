"""`make questions-check`: questions run on another PyTorch."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import versions

ROOT = Path(__file__).parents[1]


def test_a_version_that_does_not_exist_is_said_in_pips_words(monkeypatch, tmp_path):
    monkeypatch.setattr(versions, "ROOT", tmp_path)

    def run(command, **options):
        if "venv" in command:
            return subprocess.CompletedProcess(command, 0)
        assert f"torch=={'0.0.1'}" in command
        return subprocess.CompletedProcess(command, 1, "", "ERROR: No matching distribution found for torch==0.0.1")

    monkeypatch.setattr(versions.subprocess, "run", run)
    with pytest.raises(SystemExit, match=r"PyTorch 0.0.1 could not be installed:\nERROR: No matching distribution"):
        versions.environment("0.0.1")
    assert not (tmp_path / ".venvs" / "torch-0.0.1" / "ready").exists()


def test_cells_that_print_something_else_are_listed(monkeypatch, tmp_path, capsys):
    """This environment's Python stands for the other: nothing differs until a stored output is changed."""
    (folder := tmp_path / "notebooks" / "questions").mkdir(parents=True)
    text = (ROOT / "notebooks" / "questions" / "gradients_missing.ipynb").read_text(encoding="utf-8")
    (folder / "gradients_missing.ipynb").write_text(text.replace("before a pass: None", "before a pass: 0"))
    monkeypatch.setattr(versions, "ROOT", tmp_path)
    monkeypatch.setattr("tests.portable.__main__.ROOT", tmp_path)
    monkeypatch.setattr(versions, "environment", lambda version: Path(sys.executable))
    monkeypatch.setattr(sys, "argv", ["versions", "2.15.0", "gradients"])
    monkeypatch.setenv("JUPYTER_PATH", "")
    assert versions.main() == 1
    printed = capsys.readouterr().out
    assert "gradients_missing: 1 differs" in printed
    assert "stored 'before a pass: 0', here 'before a pass: None'" in printed
