"""The way of a submission: it is posed the cases, run, and judged; several at a time."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial

from course_utils.checks.registry import LESSONS
from course_utils.grading.controller.hearing import Hearing
from course_utils.grading.controller.judges import Judges, JudgesFailed
from course_utils.grading.controller.machine import choose
from course_utils.grading.controller.parent import Parents, WarmParent
from course_utils.grading.controller.patience import Patience
from course_utils.grading.controller.posing import Posed
from course_utils.grading.controller.running import Attempt, run
from course_utils.grading.controller.scoring import flagged, result_of, unfinished
from course_utils.grading.controller.second import looked_twice
from course_utils.grading.errors import GradingError
from course_utils.grading.submission import ExerciseResult, Result, Submission
from course_utils.grading.wire import MAX_TEXT, Limits

TIMEOUT = 60.0
MEMORY = 1_000_000_000

_FAILED = "The grader failed on this submission, through no fault of its author: {}. All others are graded."


def grade_all(
    submissions: Iterable[Submission],
    jobs: int = 1,
    timeout: float = TIMEOUT,
    memory: int = MEMORY,
    unsafe: bool = False,
    parent: WarmParent | None = None,
    told: Callable[[ExerciseResult], None] | None = None,
    judges: Judges | None = None,
) -> Iterator[Result]:
    """Grade submissions, `jobs` at a time, and yield each result as it is there, in no particular order.

    `timeout` is wall seconds and `memory` bytes, of one submission. Whatever a submission does, it has a result, and
    the next is graded. Of a student whose slow ones took as long as Patience allows, the others are "crashed" with a
    sentence, and are to be tried again.

    The cases are new and secret in each call, and the same for all submissions of it. A `parent` and `judges` that were
    started before are used, and closed. `told` is called with the verdict on each exercise as soon as it is there, in
    another thread; those that a submission's end leaves unjudged are in its result alone.

    Raises NoSandbox where this machine has none and `unsafe` is False, and ValueError for limits that are none.
    """
    grader = Grader(parent, judges)
    running: set[Future[Result]] = set()
    try:
        if jobs < 1:
            raise ValueError(f"jobs={jobs} must be above zero")
        limits = limits_of(timeout, memory, unsafe)
        patience = Patience(timeout)
        waiting = iter(submissions)
        with ThreadPoolExecutor(jobs, thread_name_prefix="grading") as threads:
            try:
                while True:
                    while len(running) < 2 * jobs and (submission := next(waiting, None)) is not None:
                        if submission.unreadable:
                            yield grader.grade(submission, limits)
                            continue
                        running.add(threads.submit(grader.grade, submission, limits, told, patience))
                    if not running:
                        return
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            finally:
                for future in running:
                    future.cancel()
                grader.stop()
    finally:
        grader.close()


def limits_of(timeout: float, memory: int, unsafe: bool) -> Limits:
    """Return the limits of a submission, in the best sandbox of this machine. Raises as `grade_all` does."""
    if timeout <= 0 or memory <= 0:
        raise ValueError(f"timeout={timeout} and memory={memory} must be above zero")
    return Limits("none" if unsafe else choose(), timeout, memory)


class Grader:
    """Grades submissions, in several threads where the caller has several, with cases and processes of its own.

    `parent` and `judges` may have been started before. They are closed with this.
    """

    def __init__(self, parent: WarmParent | None = None, judges: Judges | None = None) -> None:
        self._parents = Parents(parent)
        self._judges = judges or Judges()
        self._keys = secrets.token_bytes(32), secrets.token_bytes(32)
        self._posed: dict[tuple[str, bool], tuple[Posed, ...]] = {}
        self._posing = threading.Lock()

    def stop(self) -> None:
        """End what still runs, where the caller wants no more results."""
        self._parents.stop()
        self._judges.close()

    def close(self) -> None:
        """Let go of the warm parents, and of the processes that judge."""
        self._judges.close()
        self._parents.close()

    def posed(self, lesson: str, again: bool = False) -> tuple[Posed, ...]:
        """Return the exercises of a lesson with the cases of this grader: none where it is no lesson.

        Those of the second look are others. Raises JudgesFailed where the processes that make cases cannot be had.
        """
        if lesson not in LESSONS:
            return ()
        with self._posing:
            if (lesson, again) not in self._posed:
                self._posed[lesson, again] = self._judges.pose(lesson, self._keys[again])
            return self._posed[lesson, again]

    def grade(
        self,
        submission: Submission,
        limits: Limits,
        told: Callable[[ExerciseResult], None] | None = None,
        patience: Patience | None = None,
    ) -> Result:
        """Do as `graded`, where there is patience left for this student. Raises nothing."""
        if submission.unreadable:
            return self._not_run(submission, Attempt("unreadable", submission.unreadable))
        if patience is None:
            return self.graded(submission, limits, told)
        if over := patience.over(submission.student):
            return self._not_run(submission, Attempt("crashed", over, again=True))
        began = time.monotonic()
        try:
            return self.graded(submission, limits, told)
        finally:
            patience.took(submission.student, time.monotonic() - began)

    def graded(
        self, submission: Submission, limits: Limits, told: Callable[[ExerciseResult], None] | None = None
    ) -> Result:
        """Run a submission, and judge each exercise while the next is observed. Raises nothing.

        Where the grader itself fails on it, in whatever part, that is the result: "crashed", with the reason. What
        was judged before keeps its points.
        """
        posed: tuple[Posed, ...] = ()
        with Hearing(self._judges, told) as hearing:
            try:
                posed = self.posed(submission.assignment)
                attempt = run(submission, posed, limits, self._parents, hearing.hear)
            except Exception as error:
                reason = _FAILED.format(f"{type(error).__name__}: {error}"[:MAX_TEXT])
                attempt = Attempt("crashed", reason, again=isinstance(error, GradingError | OSError | MemoryError))
            rows = hearing.rows()
        if hearing.reason and attempt.status == "graded":
            attempt = replace(attempt, status=hearing.status, reason=hearing.reason, again=hearing.again)
        answers = {name: answer for name, answer in attempt.answers.items() if not answer.complete}
        result = result_of(submission, posed, replace(attempt, answers=answers), rows)
        with Hearing(self._judges, left=hearing.left) as later:
            if attempt.status != "crashed":
                others = partial(self.posed, submission.assignment, again=True)
                result = looked_twice(result, submission, others, limits, self._parents, later.hear)
            if not (posed and submission.cells):  # there is nothing to look at
                return result
            try:
                return flagged(result, later.flags(submission, tuple(item.exercise for item in posed)))
            except JudgesFailed as error:
                return unfinished(result, error)

    def _not_run(self, submission: Submission, attempt: Attempt) -> Result:
        """Return the result of what is neither run nor judged nor looked at."""
        try:
            posed = self.posed(submission.assignment)
        except Exception:  # then nobody knows of how many points it has none
            posed = ()
        return result_of(submission, posed, attempt, {})
