"""Telling the learner's own lines from everybody else's."""

from __future__ import annotations

import linecache
import traceback

from course_utils.checks.data import Raised, printable, type_name
from course_utils.checks.frames import is_learners
from course_utils.checks.timelimit import TimeUp, time_limit
from course_utils.explain.crossing import Told, told

MAX_TEXT = 2000
EXPLAIN_SECONDS = 1.0


def raised_by_learner(error: BaseException) -> Raised:
    """Describe an exception as the learner's: its type and message, the innermost line of theirs, and what it means."""
    line, number = "", 0
    for frame, frame_line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if is_learners(file):
            source = linecache.getline(file, frame_line, frame.f_globals).strip()
            if source:  # code made by exec has none; then the line that called exec is the one to show
                line, number = source[:MAX_TEXT], frame_line
    return Raised(type_name(error), printable(_text(error)), printable(line), number, _explanation(error))


def named(error: BaseException) -> str:
    """Return an exception on one line: its type, and the first line of its message; of a SyntaxError also its line.

    Nothing bounds its length but MAX_TEXT.
    """
    text = _text(error)
    if isinstance(error, SyntaxError) and type(error.msg) is str and type(error.lineno) is int:
        text = f"{error.msg} (line {error.lineno})"  # its own text names a file that nobody has
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return printable(f"{type_name(error)}: {first}" if first else type_name(error))


def _text(error: BaseException) -> str:
    """Return an exception's message. The class may be the learner's, and its __str__ do anything."""
    try:
        with time_limit(1.0):
            text = str.__str__(str(error))
    except KeyboardInterrupt:
        raise
    except (Exception, SystemExit, GeneratorExit, TimeUp):
        return "(its message could not be made into text)"
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} ... ({len(text):,} characters)"


def _explanation(error: BaseException) -> Told | None:
    """Return what an error of PyTorch's means, where that can be said. Whatever the learner's code changed, it ends."""
    try:
        with time_limit(EXPLAIN_SECONDS):
            from course_utils.explain.explaining import explain  # dear, and most answers raise nothing

            found = explain(error)
            return None if found is None else told(found)
    except KeyboardInterrupt:
        raise
    except (Exception, SystemExit, GeneratorExit, TimeUp):
        return None
