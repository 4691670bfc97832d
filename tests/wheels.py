"""The course's wheel, and an environment in which nothing but pip and the packages of this machine are."""

import os
import subprocess
import sys
import venv
from pathlib import Path
from shutil import copy, copytree, ignore_patterns

ROOT = Path(__file__).parents[1]
PARTS = ("course_utils", "notebooks", "exercises", "solutions", "classroom")
FILES = ("pyproject.toml", "README.md", "constraints.txt")

_BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout into a folder, and return its path."""
    source = folder / "source"
    for part in PARTS:
        copytree(ROOT / part, source / part, ignore=ignore_patterns("__pycache__", ".ipynb_checkpoints"))
    for name in FILES:
        copy(ROOT / name, source / name)
    subprocess.run([sys.executable, "-c", _BUILD, str(folder)], cwd=source, check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


def bare_python(folder: Path) -> Path:
    """Make an environment with pip, beside it the packages of this one but for the course, and return its Python."""
    home, beside = folder / "env", folder / "beside"
    venv.create(home, with_pip=True)
    beside.mkdir()
    for place in (Path(path) for path in sys.path if "site-packages" in path):
        for entry in place.iterdir():
            ours = entry.name.startswith(("autograd_course", "__editable__", "course_utils")) or entry.suffix == ".pth"
            if not ours and not (beside / entry.name).exists():
                (beside / entry.name).symlink_to(entry)
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    purelib = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    (Path(purelib) / "zz_beside.pth").write_text(str(beside))
    return python
