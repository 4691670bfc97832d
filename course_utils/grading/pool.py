"""The controller: it holds the cases, hands submissions to warm parents, and judges what comes back."""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cache

import torch

from course_utils.checks.data import Case, decode, encode
from course_utils.checks.examine import judge
from course_utils.checks.exercise import Exercise, Verdict
from course_utils.checks.registry import exercises
from course_utils.checks.timelimit import TimeUp, time_limit
from course_utils.grading.parent import Answered, Attempt, ParentFailed, Posed, WarmParent
from course_utils.grading.sandbox import Limits, choose
from course_utils.grading.submission import ExerciseResult, Result, Status, Submission

TIMEOUT = 60.0
MEMORY = 1_000_000_000
CELL_SECONDS = 10.0
CASE_SECONDS = 5.0
JUDGE_SECONDS = 20.0

_CHANGED = "Your code changed {} while it was being checked. Answers are observed with PyTorch as it is."
_UNREACHED = "This exercise could not be checked: {}"


def grade_all(
    submissions: Iterable[Submission],
    jobs: int = 1,
    timeout: float = TIMEOUT,
    memory: int = MEMORY,
    unsafe: bool = False,
) -> Iterator[Result]:
    """Grade submissions, `jobs` at a time, and yield each result as it is there, in no particular order.

    `timeout` is wall seconds and `memory` bytes, of one submission. Whatever a submission does, it has a result, and
    the next is graded. The cases are new and secret in each call, and the same for all submissions of it.

    Raises NoSandbox where this machine has none and `unsafe` is False; ValueError for limits that are none;
    ParentFailed where no warm parent can be started.
    """
    if jobs < 1 or timeout <= 0 or memory <= 0:
        raise ValueError(f"jobs={jobs}, timeout={timeout} and memory={memory} must all be above zero")
    limits = Limits("none" if unsafe else choose(), timeout, memory)
    # As in the children: with more threads sums are rounded otherwise, and right answers differ from the judge's.
    torch.set_num_threads(1)
    run = _Run(limits)
    run.start()
    waiting = iter(submissions)
    running: set[Future[Result]] = set()
    try:
        with ThreadPoolExecutor(jobs, thread_name_prefix="grading") as threads:
            try:
                while True:
                    while len(running) < 2 * jobs and (submission := next(waiting, None)) is not None:
                        running.add(threads.submit(run.grade, submission))
                    if not running:
                        return
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            finally:
                for future in running:
                    future.cancel()
                run.stop()
    finally:
        run.close()


class _Run:
    """What the threads of one call share: the cases, and the warm parents that wait for work."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._idle: queue.SimpleQueue[WarmParent] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._posed = cache(_posed)
        self._busy: set[WarmParent] = set()
        self._stopped = False

    def start(self) -> None:
        """Start a first warm parent. Raises ParentFailed, before any submission could."""
        self._idle.put(self._new())

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

    def grade(self, submission: Submission) -> Result:
        started = time.monotonic()
        posed = [exercise for exercise in exercises().values() if exercise.lesson == submission.assignment]
        points = float(sum(exercise.points for exercise in posed))
        if submission.unreadable or not posed:
            reason = submission.unreadable or f"{submission.assignment!r} is no assignment of this course."
            rows = tuple(_row(exercise, _unreached(exercise, reason), 0.0) for exercise in posed)
            return _result(submission, "unreadable", rows, points, 0.0, reason)
        with self._lock:
            asked = [self._posed(exercise.id) for exercise in posed]
        try:
            attempt, status, reason = self._attempt(submission, asked)
        except ParentFailed as error:
            attempt, status, reason = Attempt(), "crashed", f"The grader's own process failed: {error}."
        with self._lock:
            rows = tuple(_judged(item, attempt.answers.get(item.exercise.id), reason) for item in asked)
        return _result(submission, status, rows, points, time.monotonic() - started, reason)

    def _attempt(self, submission: Submission, posed: list[Posed]) -> tuple[Attempt, Status, str]:
        """Run a submission. A child that dies is followed by one more, which leaves the deadly exercise to the end."""
        first = self._once(submission, posed)
        if first.ended.how == "refused":
            raise ParentFailed(first.ended.detail)
        if not _died(first, posed):
            return first, *_status(first, submission, self._limits)
        known = {name: answer for name, answer in first.answers.items() if answer.complete}
        left = [item for item in posed if item.exercise.id not in known]
        left.sort(key=lambda item: item.exercise.id in first.answers)
        second = self._once(submission, left)
        second.answers = known | {name: answer for name, answer in second.answers.items()}
        return second, *_status(second, submission, self._limits, _died(second, posed))

    def _once(self, submission: Submission, posed: list[Posed]) -> Attempt:
        try:
            return self._with_a_parent(submission, posed)
        except ParentFailed:  # it may have been ended from outside, which is not the learner's fault
            return self._with_a_parent(submission, posed)

    def _with_a_parent(self, submission: Submission, posed: list[Posed]) -> Attempt:
        try:
            parent = self._idle.get_nowait()
        except queue.Empty:
            parent = self._new()
        try:
            with self._lock:
                self._busy.add(parent)
            cell_seconds = min(CELL_SECONDS, self._limits.seconds / 3)
            case_seconds = min(CASE_SECONDS, self._limits.seconds / 3)
            attempt = parent.attempt(submission.cells, posed, self._limits, cell_seconds, case_seconds)
        except BaseException:
            parent.close()
            raise
        finally:
            with self._lock:
                self._busy.discard(parent)
        self._idle.put(parent)
        return attempt

    def _new(self) -> WarmParent:
        if self._stopped:
            raise ParentFailed("grading was stopped")
        return WarmParent()


def _posed(name: str, seed: Callable[[int], int] = secrets.randbelow) -> Posed:
    exercise = exercises()[name]
    torch.manual_seed(seed(2**31))
    cases = tuple((case.name, encode(case.given)) for case in exercise.cases(seed(2**31)))
    return Posed(exercise, cases)


def _died(attempt: Attempt, posed: list[Posed]) -> bool:
    whole = attempt.ran and all(
        item.exercise.id in attempt.answers and attempt.answers[item.exercise.id].complete for item in posed
    )
    return bool(attempt.trouble) or (not whole and attempt.ended.how in ("died", "stopped"))


def _status(attempt: Attempt, submission: Submission, limits: Limits, died: bool = False) -> tuple[Status, str]:
    how = attempt.ended.how
    if how == "timeout":
        return "timeout", f"It was still running after {limits.seconds:g} seconds and was stopped."
    if how == "memory":
        return "memory", f"It used more than {limits.memory / 1e6:,.0f} MB of memory and was stopped."
    if died:
        detail = attempt.trouble or attempt.ended.detail or "it closed its connection to the grader"
        return "crashed", f"The process that ran it ended early, twice: {detail}."
    numbers = [submission.cells[index].number for index in attempt.stopped if index < len(submission.cells)]
    if numbers:
        return "timeout", f"Cell {numbers[0]} was still running at its time limit and was stopped."
    numbers = [submission.cells[index].number for index in attempt.starved if index < len(submission.cells)]
    if numbers:
        return (
            "memory",
            f"Cell {numbers[0]} asked for more memory than the {limits.memory / 1e6:,.0f} MB that it may have.",
        )
    return "graded", ""


def _judged(item: Posed, answer: Answered | None, reason: str) -> ExerciseResult:
    exercise = item.exercise
    if answer is None or not answer.complete:
        return _row(exercise, _unreached(exercise, reason), answer.seconds if answer else 0.0)
    if not answer.attempted:
        message = f"`{exercise.id}` was not defined, or still holds `...`."
        return _row(exercise, Verdict(exercise.id, "not attempted", exercise.points, (message,)), answer.seconds)
    if answer.problem or answer.changed:
        message = answer.problem or _CHANGED.format(" and ".join(answer.changed))
        return _row(exercise, Verdict(exercise.id, "incorrect", exercise.points, (message,)), answer.seconds)
    # The cases are made again from their bytes: a judge may not have changed them for the next submission.
    pairs = [(_case(name, given), seen) for (name, given), seen in zip(item.cases, answer.seen, strict=False)]
    try:
        with time_limit(JUDGE_SECONDS):
            verdict = judge(exercise, pairs, tuple(answer.warnings))
    except TimeUp:
        verdict = _unreached(exercise, "what was observed could not be judged in time.")
    return _row(exercise, verdict, answer.seconds)


def _case(name: str, given: bytes) -> Case:
    return Case(name, decode(given))


def _unreached(exercise: Exercise, reason: str) -> Verdict:
    return Verdict(exercise.id, "error", exercise.points, (_UNREACHED.format(reason),))


def _row(exercise: Exercise, verdict: Verdict, seconds: float) -> ExerciseResult:
    return ExerciseResult(
        exercise.id,
        verdict.outcome,
        float(verdict.score),
        float(exercise.points),
        verdict.misconceptions,
        verdict.messages,
        round(seconds, 4),
    )


def _result(
    submission: Submission, status: Status, rows: tuple[ExerciseResult, ...], points: float, seconds: float, reason: str
) -> Result:
    return Result(
        student=submission.student,
        assignment=submission.assignment,
        path=submission.path,
        status=status,
        score=sum(row.score for row in rows),
        points=points,
        seconds=round(seconds, 4),
        exercises=rows,
        reason=reason,
    )
