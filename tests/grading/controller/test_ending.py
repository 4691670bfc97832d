"""How a submission ended, told from what its last child did."""

import pytest

from course_utils.grading import wire
from course_utils.grading.controller.conversation import Said
from course_utils.grading.controller.ending import Child, ending
from course_utils.grading.submission import Cell, Submission

LIMITS = wire.Limits("none", 6, 500_000_000)
SUBMISSION = Submission("s", "00_start_here", "s.ipynb", "d", (Cell(2, "x = 1"), Cell(5, "y = 1")))
RAN = wire.Ran(b"")


def child(how: str, ran: wire.Ran | None = RAN, trouble: str = "", detail: str = "", died: bool = False) -> Child:
    return Child(Said(ran, {}, trouble), wire.Ended(how, detail), died)


@pytest.mark.parametrize(
    ("last", "status", "reason"),
    [
        (child("stopped"), "graded", ""),
        (child("timeout"), "timeout", "It was still running after 6 seconds and was stopped."),
        (child("memory"), "memory", "It used more than 500 MB of memory and was stopped."),
        (
            child("died", detail="it ended itself with code 1", died=True),
            "crashed",
            "The process that ran it ended early, twice: it ended itself with code 1.",
        ),
        (
            child("died", trouble="it lied", detail="it ended itself with code 1", died=True),
            "crashed",
            "The process that ran it ended early, twice: it lied.",
        ),
        (
            child("stopped", None, died=True),
            "crashed",
            "The process that ran it ended early, twice: it closed its connection to the grader.",
        ),
        (
            child("stopped", wire.Ran(b"", stopped=(1,), starved=(0,))),
            "timeout",
            "Cell 5 was still running at its time limit and was stopped.",
        ),
        (
            child("stopped", wire.Ran(b"", starved=(0,))),
            "memory",
            "Cell 2 asked for more memory than the 500 MB that it may have.",
        ),
        (
            child("stopped", wire.Ran(b"", crowded=(1,))),
            "memory",
            "Cell 5 started more threads than it may have (64), and they were ended.",
        ),
        (child("threads"), "memory", "It started more than 256 threads and was stopped."),
        (child("stopped", wire.Ran(b"", stopped=(7,), starved=(2,), crowded=(9,))), "graded", ""),  # no such cells
    ],
)
def test_the_last_child_tells_how_a_submission_ended(last: Child, status: str, reason: str) -> None:
    assert ending(last, SUBMISSION, LIMITS) == (status, reason)
