"""Whose code runs: the learner's, a library's, or the course's."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

_COURSE = str(Path(__file__).parents[1]) + os.sep
_LIBRARIES = tuple(
    {str(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")} | {"<frozen "}
)


def is_course(file: str) -> bool:
    """Return whether the code in `file` belongs to this package."""
    return file.startswith(_COURSE)


def is_learners(file: str) -> bool:
    """Return whether the code in `file` is neither the course's nor an installed library's."""
    return not file.startswith((_COURSE, *_LIBRARIES))
