"""An installed course: its wheel has lessons and exercises, no solutions, and `course lab` copies from there."""

import io
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from course_utils.grading.outgoing.autograder import Settings, autograder_zip
from course_utils.place import PACKAGE
from tests.wheels import PARTS, ROOT, build_wheel

COPY = """
from pathlib import Path
from course_utils import copies, place
from course_utils.ask.codes import asked
written = copies.renew(place.ROOT, place.HOME / copies.FOLDER)
print(len(written), (place.HOME / copies.FOLDER / "notebooks" / "00_start_here.ipynb").exists())
print(place.ROOT.name, asked("parameter-never-reached"))
"""
GRADESCOPE = """
import io, zipfile
from pathlib import Path
from click.testing import CliRunner
from course_utils.cli import course
done = CliRunner().invoke(course, ["gradescope", "02"])
print(done.output, *zipfile.ZipFile("autograder.zip").namelist())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def test_the_wheel_has_what_learners_get_and_no_solutions(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    shared = {name.partition("/share/autograd-course/")[2] for name in names if "/share/autograd-course/" in name}
    for folder in ("notebooks", "notebooks/deeper", "notebooks/questions", "exercises"):
        assert {f"{folder}/{path.name}" for path in (ROOT / folder).glob("*.ipynb")} <= shared
    assert "notebooks/README.md" in shared
    assert not [name for name in names if "solution" in name.lower() and name.endswith(".ipynb")]


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Return the Python of an environment in which the wheel is installed, beside the packages of this one."""
    home = tmp_path_factory.mktemp("installed") / "env"
    venv.create(home, with_pip=False)
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    purelib, data = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'), sysconfig.get_path('data'), sep='\\n')"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")[:2]
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(purelib)
    (unpacked,) = Path(purelib).glob("*.data/data")
    shutil.copytree(unpacked, data, dirs_exist_ok=True)  # what pip does with a wheel's data
    # Beside it the packages of this environment, after its own.
    others = [path for path in sys.path if "site-packages" in path]
    (Path(purelib) / "zz_others.pth").write_text("\n".join(others))
    return python


def said(python, code, folder):
    environment = {**os.environ, "JUPYTER_DATA_DIR": str(folder / "jupyter")}
    environment.pop("PYTHONPATH", None)
    work = folder / "work"
    work.mkdir()
    done = subprocess.run([python, "-c", code], cwd=work, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout


def test_an_installed_course_makes_an_autograder_as_a_clone_does(installed, tmp_path):
    told = said(installed, GRADESCOPE, tmp_path)
    assert told.startswith("autograder.zip: grades 02_how_backward_works. Upload it")
    names = set(told.split())
    assert {"setup.sh", "run_autograder", "constraints.txt", "pyproject.toml", "course_utils/place.py"} <= names
    ours = autograder_zip(ROOT, PACKAGE, Settings("02_how_backward_works"))
    assert set(zipfile.ZipFile(io.BytesIO(ours)).namelist()) <= names


def test_an_installed_course_makes_the_learners_copy(installed, tmp_path):
    first, second = said(installed, COPY, tmp_path).splitlines()
    count = sum(len(list((ROOT / folder).glob("*.ipynb"))) for folder in (*PARTS[2:3], "notebooks"))
    copied, exists = first.split()
    assert int(copied) >= count
    assert exists == "True"
    assert second.startswith('autograd-course Asked as "')
