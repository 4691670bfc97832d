"""The zip of a Gradescope autograder, and its scripts."""

import re
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from course_utils.grading.outgoing.autograder import AutograderError, Settings, autograder_zip
from course_utils.place import PACKAGE

ROOT = Path(__file__).parents[3]
LESSON = "00_start_here"


def test_the_zip_holds_the_course_without_answers_and_is_the_same_each_time():
    content = autograder_zip(ROOT, PACKAGE, Settings(LESSON))
    assert content == autograder_zip(ROOT, PACKAGE, Settings(LESSON))
    assert content != autograder_zip(ROOT, PACKAGE, Settings("01_graph_structure"))


def test_names_and_permissions_in_the_zip(tmp_path):
    (tmp_path / "a.zip").write_bytes(autograder_zip(ROOT, PACKAGE, Settings(LESSON)))
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        infos = {info.filename: info for info in archive.infolist()}
    assert {name for name in infos if "/" not in name} == {
        *("setup.sh", "run_autograder", "assignment.json", "README.md", "constraints.txt", "pyproject.toml")
    }
    assert {name.partition("/")[0] for name in infos if "/" in name} == {"course_utils"}
    assert {
        "course_utils/py.typed",
        "course_utils/grading/outgoing/report.css",
        "course_utils/pictures/stepper.js",
    } <= set(infos)
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
    (told,) = re.findall(r'python" -P -c "(.*)"', setup)
    done = subprocess.run([sys.executable, "-c", told], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("sandbox: "), "its last line says what the machine offers"


def test_a_copy_without_the_scripts_is_told(tmp_path):
    with pytest.raises(AutograderError, match=r"gradescope/setup\.sh: cannot be read: No such file .* whole course"):
        autograder_zip(tmp_path, PACKAGE, Settings(LESSON))
