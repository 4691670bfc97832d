"""Gradescope: the zip of an autograder, and what its scripts leave, run as Gradescope runs them."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from course_utils import cli
from course_utils.grading import gradescope
from course_utils.grading.controller import machine
from course_utils.grading.outgoing.autograder import Settings
from tests.grading.gradescope_form import valid
from tests.grading.submissions import needs_a_sandbox, points_of, total_of

ROOT = Path(__file__).parents[2]
LESSON = "00_start_here"


@pytest.fixture
def container(tmp_path: Path) -> Path:
    """A folder as /autograder is when a submission came. In place of what setup.sh installs: this Python."""
    zipped = tmp_path / "autograder.zip"
    done = CliRunner().invoke(cli.course, ["gradescope", "00", "--out", str(zipped)])
    assert done.exit_code == 0, done.output
    root = tmp_path / "autograder"
    (root / "submission").mkdir(parents=True)
    with zipfile.ZipFile(zipped) as archive:
        archive.extractall(root / "source")
        for info in archive.infolist():
            (root / "source" / info.filename).chmod(info.external_attr >> 16)
    shutil.copy(root / "source" / "run_autograder", root)
    (root / "venv" / "bin").mkdir(parents=True)
    python = root / "venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return root


def run(root: Path) -> dict[str, Any]:
    environment = {**os.environ, "AUTOGRADER_ROOT": str(root)}
    environment.pop("PYTHONPATH", None)
    subprocess.run([root / "run_autograder"], env=environment, cwd=root, check=True, timeout=120)
    return valid(json.loads((root / "results" / "results.json").read_text()))


@needs_a_sandbox
def test_what_was_handed_in_is_graded(container):
    shutil.copy(ROOT / "solutions" / f"{LESSON}.ipynb", container / "submission" / "my work.ipynb")
    told = run(container)
    assert (told["score"], told["output"]) == (total_of(), f"{total_of()} of {total_of()} points")
    assert [(test["name"], test["status"], test["max_score"]) for test in told["tests"]] == [
        (name, "passed", points) for name, points in points_of().items()
    ]
    shutil.copy(ROOT / "exercises" / f"{LESSON}.ipynb", container / "submission" / "my work.ipynb")
    told = run(container)
    assert told["score"] == 0
    assert {test["status"] for test in told["tests"]} == {"failed"}
    assert told["tests"][0]["output"].startswith("not attempted\n")


@needs_a_sandbox
@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {},
            r"^Hand in one notebook, 00_start_here\.ipynb\. In what came, there is no notebook \(\.ipynb\) in this fol",
        ),
        ({"a.ipynb": LESSON, "b.ipynb": LESSON}, r"You handed in 2: a\.ipynb, b\.ipynb\.$"),
        (
            {"x/a.ipynb": LESSON, "x/b.ipynb": LESSON},
            r"There are 2 files of this student for this assignment: .*a\.ipynb; .*b\.ipynb\. Keep the one",
        ),
        ({"a.ipynb": "01_graph_structure"}, r"You handed in another: a\.ipynb is of 01_graph_structure\.$"),
        ({"a.ipynb": ""}, r"^The file is empty\.$"),
        ({"notes.md": ""}, "there is no notebook"),
    ],
)
def test_what_cannot_be_graded_has_score_0_and_says_why(tmp_path, files, words):
    for name, lesson in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes((ROOT / "exercises" / f"{lesson}.ipynb").read_bytes() if lesson else b"")
    told = valid(gradescope.grade(tmp_path, Settings(LESSON)))
    assert told["score"] == 0
    assert re.search(words, told["output"])
    assert [test["max_score"] for test in told["tests"]] == list(points_of().values())


def test_a_result_is_there_whatever_breaks(container):
    shutil.rmtree(container / "submission")
    assert "there is no such file or folder" in run(container)["output"]
    (container / "source" / "assignment.json").write_text("{}")
    assert "Tell your teacher: ValidationError: Object missing required field `lesson`" in run(container)["output"]
    (container / "source" / "course_utils" / "__init__.py").write_text("raise SystemExit(1)")
    assert "The grader ended before it could tell a result" in run(container)["output"]


def test_without_a_sandbox_nothing_runs_but_where_the_teacher_said_so(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "available", lambda: "none")
    shutil.copy(ROOT / "solutions" / f"{LESSON}.ipynb", tmp_path)
    with pytest.raises(machine.NoSandbox):
        gradescope.grade(tmp_path, Settings(LESSON))
    assert valid(gradescope.grade(tmp_path, Settings(LESSON, unsafe=True)))["score"] == total_of()
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "assignment.json").write_text(f'{{"lesson": "{LESSON}"}}')
    (tmp_path / "submission").mkdir()
    shutil.move(tmp_path / f"{LESSON}.ipynb", tmp_path / "submission")
    gradescope.main(tmp_path)
    told = valid(json.loads((tmp_path / "results" / "results.json").read_text()))
    assert told["output"].startswith(
        "Nothing was graded, through no fault of yours. Tell your teacher: this machine of"
    )
