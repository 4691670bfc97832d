"""Run the questions on another PyTorch, and list what changed: `python -m tests.versions 2.15.0 [THEME ...]`.

The version is installed from PyPI into an environment of its own, `.venvs/torch-VERSION`, which is kept for the next
time. Questions need nothing of the course, so its package is not installed there. The exit status is 1 where a cell
prints something else than on the pinned version; that list is the work of moving the pin.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from course_utils import notebooks
from tests.portable.__main__ import cells_that_differ, install_kernel

ROOT = Path(__file__).parents[1]
NEEDED = ("ipykernel", "numpy")


def environment(version: str) -> Path:
    """Return the Python of an environment with this version of PyTorch; make it where there is none.

    Raises SystemExit with pip's words where the version cannot be installed.
    """
    folder = ROOT / ".venvs" / f"torch-{version}"
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        command = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", f"torch=={version}", *NEEDED]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"PyTorch {version} could not be installed:\n{done.stderr.strip()}")
        (folder / "ready").touch()
    return python


def main() -> int:
    """Print what differs, theme by theme, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    parser.add_argument("version", help="of PyTorch, as in 2.15.0")
    parser.add_argument("themes", nargs="*", metavar="THEME", help="limits it to themes that begin so, as in memory")
    asked = parser.parse_args()
    python = environment(asked.version)
    problems = 0
    with tempfile.TemporaryDirectory() as scratch:
        name = install_kernel(Path(scratch), "another PyTorch", str(python))
        for path in notebooks.sources(ROOT, asked.themes):
            if path.parent.name == "questions":
                found = cells_that_differ(path, name)
                print(f"{path.stem}: {len(found) or 'nothing'} differs", *found, sep="\n  ", flush=True)
                problems += len(found)
    return int(problems > 0)


if __name__ == "__main__":
    sys.exit(main())
