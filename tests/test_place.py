"""An installed course: its wheel has lessons and exercises, no solutions, and `course lab` copies from there."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.wheels import PARTS, ROOT, build_wheel

COPY = """
from pathlib import Path
from course_utils import copies, place
from course_utils.ask.codes import asked
written = copies.renew(place.ROOT, place.HOME / copies.FOLDER)
print(len(written), (place.HOME / copies.FOLDER / "notebooks" / "00_start_here.ipynb").exists())
print(place.ROOT.name, asked("parameter-never-reached"))
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


def test_an_installed_course_makes_the_learners_copy(wheel, tmp_path):
    home = tmp_path / "env"
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
    work = tmp_path / "work"
    work.mkdir()
    environment = {**os.environ, "JUPYTER_DATA_DIR": str(tmp_path / "jupyter")}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run([python, "-c", COPY], cwd=work, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    count = sum(len(list((ROOT / folder).glob("*.ipynb"))) for folder in (*PARTS[2:3], "notebooks"))
    copied, exists = first.split()
    assert int(copied) >= count
    assert exists == "True"
    assert second.startswith('autograd-course Asked as "')
