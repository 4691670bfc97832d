"""The controller: it holds the cases, hands submissions to warm parents, and has judged what comes back."""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cache

import torch

from course_utils.checks.data import encode
from course_utils.checks.examine import warm_up
from course_utils.checks.registry import exercises, exercises_of
from course_utils.grading.controller.attempt import Attempt, Posed, attempt
from course_utils.grading.controller.judging import died, result_of, status_of
from course_utils.grading.controller.machine import choose
from course_utils.grading.controller.parent import ParentFailed, WarmParent
from course_utils.grading.submission import Result, Status, Submission
from course_utils.grading.wire import Limits

TIMEOUT = 60.0
MEMORY = 1_000_000_000
CELL_SECONDS = 10.0
CASE_SECONDS = 5.0


def grade_all(
    submissions: Iterable[Submission],
    jobs: int = 1,
    timeout: float = TIMEOUT,
    memory: int = MEMORY,
    unsafe: bool = False,
    parent: WarmParent | None = None,
) -> Iterator[Result]:
    """Grade submissions, `jobs` at a time, and yield each result as it is there, in no particular order.

    `timeout` is wall seconds and `memory` bytes, of one submission. Whatever a submission does, it has a result, and
    the next is graded. The cases are new and secret in each call, and the same for all submissions of it. A `parent`
    that was started before is used, and closed.

    Raises NoSandbox where this machine has none and `unsafe` is False; ValueError for limits that are none;
    ParentFailed where no warm parent can be started.
    """
    grader = Grader(parent)
    running: set[Future[Result]] = set()
    try:
        if jobs < 1:
            raise ValueError(f"jobs={jobs} must be above zero")
        limits = limits_of(timeout, memory, unsafe)
        waiting = iter(submissions)
        with ThreadPoolExecutor(jobs, thread_name_prefix="grading") as threads:
            try:
                while True:
                    while len(running) < 2 * jobs and (submission := next(waiting, None)) is not None:
                        running.add(threads.submit(grader.grade, submission, limits))
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
    """Grades submissions in warm parents of its own, and in several threads where the caller has several.

    It holds the cases, which are made once.
    """

    def __init__(self, parent: WarmParent | None = None) -> None:
        self._idle: queue.SimpleQueue[WarmParent] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._posed = cache(_posed)
        self._busy: set[WarmParent] = set()
        self._stopped = False
        # As in the children: with more threads sums are rounded otherwise, and right answers differ from the judge's.
        torch.set_num_threads(1)
        warm_up()  # judges would do it, later, while somebody waits; now a parent is still starting
        if parent is not None:
            self._idle.put(parent)

    def stop(self) -> None:
        """End what still runs, where the caller wants no more results."""
        with self._lock:
            self._stopped = True
            for parent in self._busy:
                parent.kill()

    def close(self) -> None:
        """Let go of the warm parents."""
        while not self._idle.empty():
            self._idle.get().close()

    def grade(self, submission: Submission, limits: Limits) -> Result:
        """Run a submission and judge what was observed. Raises ParentFailed where no warm parent can be started."""
        started = time.monotonic()
        posed = self.posed(submission.assignment)
        if submission.unreadable or not posed:
            reason = submission.unreadable or f"{submission.assignment!r} is no assignment of this course."
            return result_of(submission, posed, {}, "unreadable", reason, 0.0)
        try:
            made, status, reason = self._attempt(submission, posed, limits)
        except ParentFailed as error:
            made, status, reason = Attempt(), "crashed", f"The grader's own process failed: {error}."
        with self._lock:
            return result_of(submission, posed, made.answers, status, reason, time.monotonic() - started)

    def posed(self, lesson: str) -> list[Posed]:
        """Return the exercises of a lesson with the cases of this grader: none where it is no lesson."""
        with self._lock:
            return [self._posed(one.id) for one in exercises_of(lesson)]

    def _attempt(self, submission: Submission, posed: list[Posed], limits: Limits) -> tuple[Attempt, Status, str]:
        """Run a submission. A child that dies is followed by one more, which leaves the deadly exercise to the end."""
        first = self._once(submission, posed, limits)
        if first.ended.how == "refused":
            raise ParentFailed(first.ended.detail)
        if not died(first, posed):
            return first, *status_of(first, submission, limits, gave_up=False)
        known = {name: answer for name, answer in first.answers.items() if answer.complete}
        left = [item for item in posed if item.exercise.id not in known]
        left.sort(key=lambda item: item.exercise.id in first.answers)
        second = self._once(submission, left, limits)
        second.answers = known | second.answers
        return second, *status_of(second, submission, limits, gave_up=died(second, posed))

    def _once(self, submission: Submission, posed: list[Posed], limits: Limits) -> Attempt:
        try:
            return self._with_a_parent(submission, posed, limits)
        except ParentFailed:  # it may have been ended from outside, which is not the learner's fault
            return self._with_a_parent(submission, posed, limits)

    def _with_a_parent(self, submission: Submission, posed: list[Posed], limits: Limits) -> Attempt:
        try:
            parent = self._idle.get_nowait()
        except queue.Empty:
            parent = self._new()
        try:
            with self._lock:
                self._busy.add(parent)
            cell_seconds = min(CELL_SECONDS, limits.seconds / 3)
            case_seconds = min(CASE_SECONDS, limits.seconds / 3)
            made = attempt(parent, submission, posed, limits, cell_seconds, case_seconds)
        except BaseException:
            parent.close()
            raise
        finally:
            with self._lock:
                self._busy.discard(parent)
        self._idle.put(parent)
        return made

    def _new(self) -> WarmParent:
        if self._stopped:
            raise ParentFailed("grading was stopped")
        return WarmParent()


def _posed(name: str, seed: Callable[[int], int] = secrets.randbelow) -> Posed:
    exercise = exercises()[name]
    torch.manual_seed(seed(2**31))
    cases = tuple((case.name, encode(case.given)) for case in exercise.cases(seed(2**31)))
    return Posed(exercise, cases)
