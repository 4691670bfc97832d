"""How the run of a submission ended, and the sentence that says why."""

from __future__ import annotations

from dataclasses import dataclass

from course_utils.grading import wire
from course_utils.grading.controller.conversation import Said
from course_utils.grading.submission import Status, Submission


@dataclass(frozen=True)
class Child:
    """What a child said, how it ended, and whether it died: before it was done, and for no limit's sake.

    `seconds` is the wall time from its fork on.
    """

    said: Said
    ended: wire.Ended
    died: bool
    seconds: float = 0.0


def ending(child: Child, submission: Submission, limits: wire.Limits) -> tuple[Status, str]:
    """Return the status of a submission by its last child, and why: a sentence, empty for "graded"."""
    how = child.ended.how
    if how == "timeout":
        return "timeout", f"It was still running after {limits.seconds:g} seconds and was stopped."
    if how == "memory":
        return "memory", f"It used more than {limits.memory / 1e6:,.0f} MB of memory and was stopped."
    if how == "threads":
        return "memory", f"It started more than {4 * wire.MAX_THREADS} threads and was stopped."
    if child.died:
        detail = child.said.trouble or child.ended.detail or "it closed its connection to the grader"
        return "crashed", f"The process that ran it ended early, twice: {detail}."
    ran = child.said.ran or wire.Ran(b"")
    stopped, starved, crowded = (
        [submission.cells[index].number for index in of if index < len(submission.cells)]
        for of in (ran.stopped, ran.starved, ran.crowded)
    )
    if stopped:
        return "timeout", f"Cell {stopped[0]} was still running at its time limit and was stopped."
    if starved:
        megabytes = f"{limits.memory / 1e6:,.0f} MB"
        return "memory", f"Cell {starved[0]} asked for more memory than the {megabytes} that it may have."
    if crowded:
        started = f"Cell {crowded[0]} started more threads than it may have ({wire.MAX_THREADS})"
        return "memory", f"{started}, and they were ended."
    return "graded", ""
