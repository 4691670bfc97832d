"""Running a submission: its cells, and its answers in the cases, in a child of a warm parent, or in two."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from course_utils.grading import wire
from course_utils.grading.controller.conversation import Answered, Seconds, converse
from course_utils.grading.controller.ending import Child, ending
from course_utils.grading.controller.parent import GRACE_SECONDS, ParentFailed, Parents
from course_utils.grading.controller.posing import Posed
from course_utils.grading.submission import Status, Submission

CELL_SECONDS = 10.0
CASE_SECONDS = 5.0
LEAST_SECONDS = 1.0  # for the child that follows one that died just before its limit


@dataclass(frozen=True)
class Attempt:
    """What came of running a submission: how it ended, what was seen of its exercises, and the wall seconds it took.

    `reason` says why it ended so, in a sentence; it is empty where the status is "graded". It may be tried `again`
    where a process ended for no limit's sake: somebody may have killed it. What `failed` was the grader itself.
    """

    status: Status
    reason: str = ""
    answers: Mapping[str, Answered] = field(default_factory=dict)
    seconds: float = 0.0
    again: bool = False
    failed: bool = False


def run(
    submission: Submission,
    posed: Sequence[Posed],
    limits: wire.Limits,
    parents: Parents,
    heard: Callable[[Posed, Answered], object],
    second: bool = False,
) -> Attempt:
    """Run a submission, whatever it does. Raises nothing. `heard` is called with each complete answer as it comes.

    Where it is run a `second` time, the answers are observed in the second way. A child that dies is followed by one
    more, which leaves the deadly exercise to the end, in what is left of the time.
    """
    if not posed:
        return Attempt("unreadable", f"{submission.assignment!r} is no assignment of this course.")
    began = time.monotonic()
    known: dict[str, Answered] = {}
    left = list(posed)
    time_left = limits.seconds
    for _ in range(2):
        try:
            child = _in_a_child(submission, left, limits, time_left, parents, heard, second)
        except ParentFailed as error:
            reason = f"The grader's own process failed: {error}."
            return Attempt("crashed", reason, seconds=time.monotonic() - began, again=True, failed=True)
        answers = known | dict(child.said.answers)
        time_left = max(time_left - child.seconds, LEAST_SECONDS)
        if not child.died:
            break
        known = {name: answer for name, answer in answers.items() if answer.complete}
        left = [item for item in posed if item.exercise.id not in known]
        left.sort(key=lambda item: item.exercise.id in child.said.answers)
    status, reason = ending(child, submission, limits)
    return Attempt(status, reason, answers, time.monotonic() - began, child.died)


def _in_a_child(
    submission: Submission,
    posed: Sequence[Posed],
    limits: wire.Limits,
    time_left: float,
    parents: Parents,
    heard: Callable[[Posed, Answered], object],
    second: bool,
) -> Child:
    """Run a submission in a new child, for as long as there is time left.

    Raises ParentFailed where two warm parents failed, or none can be started.
    """
    limited = msgspec.structs.replace(limits, seconds=time_left)
    tries = 2  # a parent may have been ended from outside, which is not the learner's fault
    while True:
        tries -= 1
        try:
            with parents.one() as parent, parent.begin(submission.assignment, limited) as line:
                parent.started()
                began = time.monotonic()
                seconds = Seconds(
                    cell=min(CELL_SECONDS, limits.seconds / 3),
                    case=min(CASE_SECONDS, limits.seconds / 3),
                    end=began + time_left + GRACE_SECONDS,
                )
                said = converse(line, submission.cells, posed, seconds, heard, second)
                if said.whole:
                    parent.stop()
                    return Child(said, wire.Ended("stopped"), died=False, seconds=time.monotonic() - began)
                parent.stop(hung_up=not said.trouble)
                ended = parent.ended()
        except ParentFailed:
            if not tries:
                raise
        else:
            if ended.how == "refused":
                raise ParentFailed(ended.detail)
            died = bool(said.trouble) or ended.how in ("died", "stopped")
            return Child(said, ended, died, time.monotonic() - began)
