"""The way of a submission: it is posed the cases, run, and judged; several at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cache

import torch

from course_utils.grading.controller.conversation import Answered
from course_utils.grading.controller.flags import with_flags
from course_utils.grading.controller.judging import judge_one, result_of
from course_utils.grading.controller.machine import choose
from course_utils.grading.controller.parent import Parents, WarmParent
from course_utils.grading.controller.posing import Posed, pose
from course_utils.grading.controller.running import Attempt, run
from course_utils.grading.controller.second import looked_twice
from course_utils.grading.submission import ExerciseResult, Result, Submission
from course_utils.grading.wire import MAX_TEXT, Limits

TIMEOUT = 60.0
MEMORY = 1_000_000_000

_FAILED = "The grader failed on this submission, through no fault of its author: {}. All others are graded."
_UNJUDGED = "The grader failed when it judged `{}`, through no fault of the author: {}. The rest is judged."


def grade_all(
    submissions: Iterable[Submission],
    jobs: int = 1,
    timeout: float = TIMEOUT,
    memory: int = MEMORY,
    unsafe: bool = False,
    parent: WarmParent | None = None,
    told: Callable[[ExerciseResult], None] | None = None,
) -> Iterator[Result]:
    """Grade submissions, `jobs` at a time, and yield each result as it is there, in no particular order.

    `timeout` is wall seconds and `memory` bytes, of one submission. Whatever a submission does, it has a result, and
    the next is graded. The cases are new and secret in each call, and the same for all submissions of it. A `parent`
    that was started before is used, and closed. `told` is called with the verdict on each exercise as soon as it is
    there, in another thread; those that a submission's end leaves unjudged are in its result alone.

    Raises NoSandbox where this machine has none and `unsafe` is False, and ValueError for limits that are none.
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
                        running.add(threads.submit(grader.grade, submission, limits, told))
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
    """Grades submissions, in several threads where the caller has several, with cases and warm parents of its own."""

    def __init__(self, parent: WarmParent | None = None) -> None:
        self._parents = Parents(parent)
        self._pose, self._pose_again = cache(pose), cache(lambda lesson: pose(lesson))
        self._alone = threading.Lock()  # cases and judges share torch's random numbers
        # Beside the threads that wait for children: what a judge imports, and computes, holds up no observation.
        self._judges = ThreadPoolExecutor(1, thread_name_prefix="judging")
        # As in the children: with more threads sums are rounded otherwise, and right answers differ from the judge's.
        torch.set_num_threads(1)

    def stop(self) -> None:
        """End what still runs, where the caller wants no more results."""
        self._parents.stop()

    def close(self) -> None:
        """Let go of the warm parents, and of the thread that judges."""
        self._judges.shutdown()
        self._parents.close()

    def posed(self, lesson: str, again: bool = False) -> tuple[Posed, ...]:
        """Return the exercises of a lesson with the cases of this grader: none where it is no lesson.

        Those of the second look are others.
        """
        with self._alone:
            return (self._pose_again if again else self._pose)(lesson)

    def grade(
        self, submission: Submission, limits: Limits, told: Callable[[ExerciseResult], None] | None = None
    ) -> Result:
        """Run a submission, and judge each exercise while the next is observed. Raises nothing.

        Where the grader itself fails on it, in whatever part, that is the result: "crashed", with the reason. What
        was judged before keeps its points.
        """
        posed: tuple[Posed, ...] = ()
        judged: dict[str, Future[ExerciseResult]] = {}

        def heard(item: Posed, answer: Answered) -> None:
            judged[item.exercise.id] = self._judges.submit(self._judge, item, answer, told)

        try:
            posed = self.posed(submission.assignment)
            attempt = run(submission, posed, limits, self._parents, heard)
        except Exception as error:
            attempt = Attempt("crashed", _FAILED.format(_named(error)))
        rows: dict[str, ExerciseResult] = {}
        for name, future in judged.items():
            try:
                rows[name] = future.result()
            except Exception as error:
                attempt = replace(attempt, status="crashed", reason=_UNJUDGED.format(name, _named(error)))
        answers = {name: answer for name, answer in attempt.answers.items() if not answer.complete}
        result = result_of(submission, posed, replace(attempt, answers=answers), rows)
        if attempt.status != "crashed":
            others = self.posed(submission.assignment, again=True)
            result = looked_twice(result, submission, others, limits, self._parents, self._judged_later)
        return with_flags(result, submission, [item.exercise for item in posed])

    def _judged_later(self, item: Posed, answer: Answered) -> Future[ExerciseResult]:
        return self._judges.submit(self._judge, item, answer, None)

    def _judge(self, item: Posed, answer: Answered, told: Callable[[ExerciseResult], None] | None) -> ExerciseResult:
        with self._alone:
            row = judge_one(item, answer)
        if told is not None:
            told(row)
        return row


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:MAX_TEXT]
