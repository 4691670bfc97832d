"""The judging of one submission: each exercise as it comes, while the next is observed, and all in one budget."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from course_utils.grading import wire
from course_utils.grading.controller import orders
from course_utils.grading.controller.conversation import Answered
from course_utils.grading.controller.judges import TRIES, Judge, Judges, JudgesFailed
from course_utils.grading.controller.posing import Posed, Question
from course_utils.grading.controller.scoring import settled, unreached, verdict
from course_utils.grading.submission import ExerciseResult, Status, Submission
from course_utils.grading.wire import MAX_TEXT

SECONDS = 15.0  # of computing, to judge all of a submission: right answers need less than one
LOOK_SECONDS = 5.0  # of computing, to look at its cells, whatever judging took: the longest need half of one
CLOCK_SECONDS = 90.0  # for one exercise, where the machine is busy

_TIMEOUT = "What was observed of `{}` could not be judged in {:g} seconds."
_MEMORY = "To judge what was observed of `{}` takes too much memory."
_CRASHED = "`{}` could not be judged: {}"
_FAILED = "The grader failed when it judged `{}`, through no fault of the author: {}. The rest is judged."
_REASONS: dict[Status, str] = {"timeout": _TIMEOUT, "memory": _MEMORY, "crashed": _CRASHED}


class Hearing:
    """Judges what is heard of one submission, in a thread and a judging process of its own. It is a context.

    `left` are the seconds of computing that it may still take. What is hostile in it costs this submission its budget,
    and nobody else's time. Where a verdict could not be had, `status` and `reason` say so, and `again` whether that
    says nothing of the submission.
    """

    def __init__(
        self, judges: Judges, told: Callable[[ExerciseResult], None] | None = None, left: float | None = None
    ) -> None:
        self.left = SECONDS if left is None else left
        self.status: Status = "graded"
        self.reason = ""
        self.again = False
        self._judges = judges
        self._told = told
        self._judge: Judge | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="judging")
        self._rows: dict[str, Future[ExerciseResult]] = {}

    def __enter__(self) -> Hearing:
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.shutdown()
        if self._judge is not None:
            self._judges.give_back(self._judge)

    def hear(self, item: Posed, answer: Answered) -> Future[ExerciseResult]:
        """Judge a complete answer, after those that were heard before."""
        row = self._rows[item.exercise.id] = self._thread.submit(self._row, item, answer)
        return row

    def flags(self, submission: Submission, exercises: tuple[Question, ...]) -> Mapping[str, tuple[str, ...]]:
        """Return for each exercise the sentences about cells that a person should read.

        Raises JudgesFailed where no process can be had that looks.
        """
        return self._thread.submit(self._looked, submission, exercises).result()

    def rows(self) -> dict[str, ExerciseResult]:
        """Return the verdicts. Then `status` and `reason` are known."""
        found: dict[str, ExerciseResult] = {}
        for name, row in self._rows.items():
            try:
                found[name] = row.result()
            except Exception as error:
                self.again |= isinstance(error, JudgesFailed)
                self._note("crashed", _FAILED.format(name, f"{type(error).__name__}: {error}"[:MAX_TEXT]))
        return found

    def _row(self, item: Posed, answer: Answered) -> ExerciseResult:
        row = settled(item, answer) or self._judged(item, answer)
        if self._told is not None:
            self._told(row)
        return row

    def _judged(self, item: Posed, answer: Answered) -> ExerciseResult:
        found = self._found(item, answer)
        if isinstance(found, orders.Verdict):
            return verdict(item, answer, found)
        reason = _REASONS[found.how].format(item.exercise.id, found.why if found.how == "crashed" else SECONDS)
        self._note(found.how, reason)
        return unreached(item, answer, found.why)

    def _found(self, item: Posed, answer: Answered) -> orders.Verdict | orders.Failed:
        late = orders.Failed("timeout", "what was observed could not be judged in time.")
        for _ in range(TRIES):  # ended from outside, which is not the learner's fault
            if self.left <= 0:
                return late
            if self._judge is None:
                self._judge = self._judges.lend(item.exercise.lesson)
            order = orders.Judge(item, answer.seen, answer.warnings, self.left, answer.told)
            try:
                judged = self._judge.ask(order, orders.Judged, CLOCK_SECONDS)
            except wire.Closed:
                code = self._end()
            except wire.WireError:
                self._end()
                self.left = 0.0
                return late
            else:
                self.left -= judged.cpu
                if judged.spent:
                    self._end()
                return judged.found
            if code == -signal.SIGXCPU:
                self.left = 0.0
                return late
            if code != -signal.SIGKILL:
                return orders.Failed("crashed", f"the process that judges ended {_how(code)}.")
        self.again = True
        return orders.Failed("crashed", f"the process that judges ended by SIGKILL, {TRIES} times.")

    def _looked(self, submission: Submission, exercises: tuple[Question, ...]) -> Mapping[str, tuple[str, ...]]:
        order = orders.Reach(tuple((cell.number, cell.source) for cell in submission.cells), exercises, LOOK_SECONDS)
        if self._judge is None:
            self._judge = self._judges.lend(submission.assignment)
        try:
            return self._judge.ask(order, orders.Flags, CLOCK_SECONDS).flags
        except wire.WireError as error:
            late = self._end() == -signal.SIGXCPU or not isinstance(error, wire.Closed)
            why = "it took too long" if late else type(error).__name__
            return {exercise.id: (orders.UNSEEN.format(why),) for exercise in exercises}

    def _end(self) -> int:
        judge, self._judge = self._judge, None
        return self._judges.end(judge) if judge is not None else 0

    def _note(self, status: Status, reason: str) -> None:
        if not self.reason:
            self.status, self.reason = status, reason


def _how(code: int) -> str:
    return f"by {signal.Signals(-code).name}" if code < 0 else f"with code {code}"
