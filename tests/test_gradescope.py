"""Gradescope: the zip of an autograder, and what its scripts leave, run as Gradescope runs them."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from course_utils import cli
from course_utils.checks.registry import exercises
from course_utils.grading import commands, gradescope, sandbox
from course_utils.grading.autograder import AutograderError, Settings, autograder_zip
from course_utils.grading.submission import ExerciseResult, Result

ROOT = Path(__file__).parents[1]
LESSON = "00_start_here"
VISIBILITY = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}

# https://gradescope-autograders.readthedocs.io/en/latest/specs/, all fields; and of the formats plain text alone.
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["score", "output", "stdout_visibility"],
    "properties": {
        "score": {"type": "number", "minimum": 0},
        "execution_time": {"type": "number", "minimum": 0},
        "output": {"type": "string", "minLength": 1},
        "output_format": {"const": "text"},
        "test_output_format": {"const": "text"},
        "test_name_format": {"const": "text"},
        "visibility": VISIBILITY,
        "stdout_visibility": {"const": "hidden"},
        "extra_data": {"type": "object"},
        "leaderboard": {"type": "array"},
        "tests": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name", "status", "score", "max_score", "output", "output_format", "visibility"],
                "properties": {
                    "name": {"type": "string", "minLength": 1},
                    "name_format": {"const": "text"},
                    "number": {"type": "string"},
                    "status": {"enum": ["passed", "failed"]},
                    "score": {"type": "number", "minimum": 0},
                    "max_score": {"type": "number", "exclusiveMinimum": 0},
                    "output": {"type": "string"},
                    "output_format": {"const": "text"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "visibility": VISIBILITY,
                    "extra_data": {"type": "object"},
                },
            },
        },
    },
}


def valid(content: dict[str, Any]) -> dict[str, Any]:
    jsonschema.validate(content, SCHEMA)
    assert all(test["score"] <= test["max_score"] for test in content.get("tests", ()))
    return content


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


def skip_without_sandbox() -> None:
    if sandbox.available() == "none":
        pytest.skip("this machine has no sandbox")


def test_what_was_handed_in_is_graded(container):
    skip_without_sandbox()
    shutil.copy(ROOT / "solutions" / f"{LESSON}.ipynb", container / "submission" / "my work.ipynb")
    told = run(container)
    assert (told["score"], told["output"]) == (2.0, "2 of 2 points")
    assert [(test["name"], test["status"], test["max_score"]) for test in told["tests"]] == [
        (one.id, "passed", one.points) for one in exercises().values() if one.lesson == LESSON
    ]
    shutil.copy(ROOT / "exercises" / f"{LESSON}.ipynb", container / "submission" / "my work.ipynb")
    told = run(container)
    assert told["score"] == 0
    assert {test["status"] for test in told["tests"]} == {"failed"}
    assert told["tests"][0]["output"].startswith("not attempted\n")


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {},
            r"^Hand in one notebook, 00_start_here\.ipynb\. In what came, there is no notebook \(\.ipynb\) in this fol",
        ),
        ({"a.ipynb": LESSON, "b.ipynb": LESSON}, r"You handed in 2: a\.ipynb, b\.ipynb\.$"),
        ({"x/a.ipynb": LESSON, "x/b.ipynb": LESSON}, "one student has two files"),
        ({"a.ipynb": "01_graph_structure"}, r"You handed in another: a\.ipynb is of 01_graph_structure\.$"),
        ({"a.ipynb": ""}, r"^The file is empty\.$"),
        ({"notes.md": ""}, "there is no notebook"),
    ],
)
def test_what_cannot_be_graded_has_score_0_and_says_why(tmp_path, files, words):
    skip_without_sandbox()
    for name, lesson in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes((ROOT / "exercises" / f"{lesson}.ipynb").read_bytes() if lesson else b"")
    told = valid(gradescope.grade(tmp_path, Settings(LESSON)))
    assert told["score"] == 0
    assert re.search(words, told["output"])
    assert [test["max_score"] for test in told["tests"]] == [1.0, 1.0]


def test_a_result_is_there_whatever_breaks(container):
    shutil.rmtree(container / "submission")
    assert "there is no such file or folder" in run(container)["output"]
    (container / "source" / "assignment.json").write_text("{}")
    assert "Tell your teacher: ValidationError: Object missing required field `lesson`" in run(container)["output"]
    (container / "source" / "course_utils" / "__init__.py").write_text("raise SystemExit(1)")
    assert "The grader ended before it could tell a result" in run(container)["output"]


def test_without_a_sandbox_nothing_runs_but_where_the_teacher_said_so(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "available", lambda: "none")
    shutil.copy(ROOT / "solutions" / f"{LESSON}.ipynb", tmp_path)
    with pytest.raises(sandbox.NoSandbox):
        gradescope.grade(tmp_path, Settings(LESSON))
    assert valid(gradescope.grade(tmp_path, Settings(LESSON, unsafe=True)))["score"] == 2
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "assignment.json").write_text(f'{{"lesson": "{LESSON}"}}')
    (tmp_path / "submission").mkdir()
    shutil.move(tmp_path / f"{LESSON}.ipynb", tmp_path / "submission")
    gradescope.main(tmp_path)
    told = valid(json.loads((tmp_path / "results" / "results.json").read_text()))
    assert told["output"].startswith(
        "Nothing was graded, through no fault of yours. Tell your teacher: this machine of"
    )


def test_scores_lie_within_the_points_and_texts_are_plain():
    rows = (
        ExerciseResult("a", "correct", 9.0, 2.0, (), (), 0.1),
        ExerciseResult("b", "incorrect", -1.0, 2.0, ("idea",), ("<script>", "x"), 0.1),
    )
    told = valid(gradescope.told(Result("s", LESSON, "p", "timeout", 8.0, 4.0, 1.0, rows, "It was <b>stopped</b>.")))
    assert [test["score"] for test in told["tests"]] == [2.0, 0.0]
    assert told["score"] == 2.0
    assert told["output"] == "It was <b>stopped</b>."
    assert told["tests"][1]["output"] == "incorrect\n<script>\nx"


def test_the_zip_holds_the_course_without_answers_and_is_the_same_each_time():
    content = autograder_zip(ROOT, Settings(LESSON))
    assert content == autograder_zip(ROOT, Settings(LESSON))
    assert content != autograder_zip(ROOT, Settings("01_graph_structure"))


def test_names_and_permissions_in_the_zip(tmp_path):
    (tmp_path / "a.zip").write_bytes(autograder_zip(ROOT, Settings(LESSON)))
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        infos = {info.filename: info for info in archive.infolist()}
    assert {name for name in infos if "/" not in name} == {
        *("setup.sh", "run_autograder", "assignment.json", "README.md", "constraints.txt", "pyproject.toml")
    }
    assert {name.partition("/")[0] for name in infos if "/" in name} == {"course_utils"}
    assert {"course_utils/py.typed", "course_utils/grading/report.css", "course_utils/pictures/stepper.js"} <= set(
        infos
    )
    assert not [name for name in infos if name.endswith((".ipynb", ".pyc"))]
    assert stat.S_IMODE(infos["run_autograder"].external_attr >> 16) == 0o755
    assert {info.date_time for info in infos.values()} == {(1980, 1, 1, 0, 0, 0)}


def test_the_scripts_are_sound():
    for name in ("setup.sh", "run_autograder"):
        subprocess.run(["bash", "-n", ROOT / "classroom" / "gradescope" / name], check=True)
    setup = (ROOT / "classroom" / "gradescope" / "setup.sh").read_text()
    assert setup.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in setup
    assert '-c "$root/source/constraints.txt" "$@"' in setup
    assert "--no-deps --index-url https://download.pytorch.org/whl/cpu torch ||" in setup
    assert 'pip -e "$root/source"' in setup
    assert "sys.version_info < (3, 11)" in setup, "the pinned packages need it"


def test_a_copy_without_the_scripts_is_told(tmp_path, monkeypatch):
    with pytest.raises(AutograderError, match=r"gradescope/setup\.sh: cannot be read: No such file .* whole course"):
        autograder_zip(tmp_path, Settings(LESSON))
    done = CliRunner().invoke(cli.course, ["gradescope", "0", "--out", str(tmp_path / "a.zip")])
    assert done.exit_code == 2
    assert "'0' names no single lesson of the course: 00_start_here, 01_graph" in done.output.replace("\n", " ")
    monkeypatch.setattr(commands, "ROOT", tmp_path)
    done = CliRunner().invoke(cli.course, ["gradescope", "00", "--out", str(tmp_path / "a.zip")])
    assert done.exit_code == 1
    assert not (tmp_path / "a.zip").exists()
