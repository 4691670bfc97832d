"""What this machine offers to keep learner code in, and the environment in which that code's processes start.

The code that keeps it in stands in sandbox/, and is never run in the controller: it is tried in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from course_utils.grading.errors import GradingError
from course_utils.grading.wire import MODES, Mode

_PROBED = "course_utils.grading.sandbox.confinement"


class NoSandbox(GradingError):
    """This machine has no way to run code that nobody trusts. The message says what is missing and what to try."""


def available() -> Mode:
    """Return the strongest mode that works here, by trying each in a process of its own (0.1 s). "none" is the last."""
    for mode in MODES[:-1]:
        tried = subprocess.run(
            [sys.executable, "-P", "-c", f"from {_PROBED} import probe; probe({mode!r})"],
            env=child_environment(),
            capture_output=True,
            check=False,
            timeout=60,
        )
        if tried.returncode == 0:
            return mode
    return "none"


def choose() -> Mode:
    """Return the mode to grade in. Raises NoSandbox where this machine has none."""
    mode = available()
    if mode == "none":
        raise NoSandbox(
            "this machine offers no sandbox: neither namespaces (as root, or where ordinary users may make them) nor "
            "Landlock with seccomp (Linux 5.13 or newer, on x86_64 or aarch64). Grade on a machine that has one. "
            "--unsafe grades without: then each submission can read and change every file that you can, use your "
            "network, and leave processes behind; only its time and memory are limited."
        )
    return mode


def child_environment() -> dict[str, str]:
    """Return an environment that finds the course, computes in one thread, and holds nothing else of the session's.

    What starts in it writes no compiled modules into the course, which may be everybody's.
    """
    course = str(Path(__file__).parents[3])
    paths = [course, *(path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path)]
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH") if name in os.environ}
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**kept, **one_thread, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
