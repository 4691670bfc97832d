"""Why an answer is not there: how the cell ended in which it was to stand."""

from __future__ import annotations

import re
from collections.abc import Sequence

from course_utils.grading import wire
from course_utils.grading.controller.posing import Question
from course_utils.grading.submission import Cell

# What Python raises where the sandbox refuses a file, a process or a connection.
_REFUSED = re.compile(r"(?:FileNotFound|Permission|BlockingIO|OS|Connection\w*|URL|gai)[Ee]rror\b")
_ALONE = (
    " The grader runs a notebook as one process, without your disk, other programs or a network: "
    "an answer needs none of them. A DataLoader gets num_workers=0."
)


def fault(exercise: Question, attempted: bool, cells: Sequence[Cell], ran: wire.Ran) -> str:
    """Return a sentence on the last cell of an answer that did not run to its end; empty where there is none.

    A cell is the answer's by nbgrader's mark. Without one it is by its source, if that binds the answer's name, and
    only where nothing usable has that name (`attempted` is False): stages of one piece of work share theirs.
    What is quoted of an exception comes from the learner's process, so it is one line that prints.
    """
    ends = {index: f"raised an error: {_told(text)}" for index, text in ran.raised}
    ends |= dict.fromkeys(ran.stopped, "was still running at its time limit and was stopped.")
    ends |= dict.fromkeys(ran.crowded, "asked for more threads than it may have.")
    ends |= dict.fromkeys(ran.starved, "asked for more memory than it may have.")
    for index in sorted(ends, reverse=True):
        if index < len(cells) and _is_of(cells[index], exercise, attempted):
            return f"Cell {cells[index].number}, where the answer stands, {ends[index]}"
    return ""


def _is_of(cell: Cell, exercise: Question, attempted: bool) -> bool:
    if cell.grade_id == exercise.id:
        return True
    return not attempted and _binding(exercise.name).search(cell.source) is not None


def _binding(name: str) -> re.Pattern[str]:
    """Match a line that binds a name, also in a source that is no Python. Possessive, so that no source is slow."""
    word = re.escape(name)
    defined = rf"(?:async[ \t]++)?+(?:def|class)[ \t]++{word}\b"
    assigned = rf"{word}[ \t]*+(?::[^=\n]*+)?+=(?!=)"
    return re.compile(rf"^[ \t]*+(?:{defined}|{assigned})", re.MULTILINE)


def _told(text: str) -> str:
    told = _printing(text)
    return f"{told}.{_ALONE}" if _REFUSED.match(told) else told


def _printing(text: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in text).strip()
