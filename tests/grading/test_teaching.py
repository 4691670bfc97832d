"""TEACHING.md: its ten commands, run as they stand, for a class of two."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LESSON = "02_how_backward_works.ipynb"
GRADEBOOK = (
    "Student,ID,SIS User ID,SIS Login ID,Section,How backward works (77)\n"
    "    Points Possible,,,,,10\n"
    '"Lovelace, Ada",1,a1,ada,ML,\n'
    '"Hopper, Grace",2,g1,grace,ML,\n'
)


def commands() -> list[str]:
    text = (ROOT / "TEACHING.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    return [line.removeprefix("$ ").partition("  #")[0].strip() for line in block.splitlines()]


def test_there_are_ten():
    assert len(commands()) == 10


@pytest.mark.skipif(sys.platform != "linux", reason="grading takes Linux")
def test_from_an_empty_folder_to_grades(tmp_path):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment |= {"COURSE_COPY": str(tmp_path / "mine"), "COURSE_PROGRESS": str(tmp_path / "progress.sqlite")}
    said = {}
    for number, command in enumerate(commands()):
        if command == "ls submitted":  # by now the class has handed in: one right, one untouched
            for student, source in (("ada", ROOT / "solutions"), ("grace", tmp_path / "handed-out" / "exercises")):
                (tmp_path / "submitted" / student).mkdir(parents=True)
                shutil.copy(source / LESSON, tmp_path / "submitted" / student)
            (tmp_path / "gradebook.csv").write_text(GRADEBOOK)
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        said[number] = done.stdout + done.stderr
    assert "ada" in (tmp_path / "scores.csv").read_text()
    assert (tmp_path / "pages" / "index.html").exists()
    graded = (tmp_path / "gradebook-graded.csv").read_text()
    assert re.search(r'"Lovelace, Ada",1,a1,ada,ML,10', graded)
    assert not (tmp_path / "handed-out").exists()
