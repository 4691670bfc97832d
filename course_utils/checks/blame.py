"""Telling the learner's own lines from everybody else's."""

from __future__ import annotations

import linecache
import sysconfig
import traceback
from pathlib import Path

from course_utils.checks.data import Raised

_PACKAGE = str(Path(__file__).parents[1])
_LIBRARIES = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
_FOREIGN = (_PACKAGE, *_LIBRARIES, "<frozen ")


def raised_by_learner(error: BaseException) -> Raised:
    """Describe an exception as the learner's: its type, its message, and the innermost line that the learner wrote."""
    line, number = "", 0
    for frame, frame_line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if not file.startswith(_FOREIGN):
            line, number = linecache.getline(file, frame_line, frame.f_globals).strip(), frame_line
    return Raised(type(error).__name__, _text(error), line, number)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # the learner's own exception class, with a broken __str__
        return "(its message could not be made into text)"
