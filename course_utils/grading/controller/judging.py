"""From what a child did to a result: judging what was observed, and saying why what is missing is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from course_utils.checks.data import Case, decode
from course_utils.checks.examine import judge
from course_utils.checks.exercise import Exercise, Verdict
from course_utils.checks.timelimit import TimeUp, time_limit
from course_utils.grading.controller.attempt import Answered, Attempt, Posed
from course_utils.grading.submission import ExerciseResult, Result, Status, Submission
from course_utils.grading.wire import Limits

JUDGE_SECONDS = 20.0
# Messages name what was observed, which a child may have made long. All of them are kept, and shown on pages.
MAX_MESSAGE = 10_000

_CHANGED = "Your code changed {} while it was being checked. Answers are observed with PyTorch as it is."
_UNREACHED = "This exercise could not be checked: {}"


def died(attempt: Attempt, posed: Sequence[Posed]) -> bool:
    """Say whether the child ended before it was done, for no limit's sake."""
    return bool(attempt.trouble) or (not attempt.whole(posed) and attempt.ended.how in ("died", "stopped"))


def status_of(attempt: Attempt, submission: Submission, limits: Limits, gave_up: bool) -> tuple[Status, str]:
    """Return how a submission ended, and why: a sentence, empty for "graded". It `gave_up` if it died twice."""
    how = attempt.ended.how
    if how == "timeout":
        return "timeout", f"It was still running after {limits.seconds:g} seconds and was stopped."
    if how == "memory":
        return "memory", f"It used more than {limits.memory / 1e6:,.0f} MB of memory and was stopped."
    if gave_up:
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


def result_of(
    submission: Submission,
    posed: Sequence[Posed],
    answers: Mapping[str, Answered],
    status: Status,
    reason: str,
    seconds: float,
) -> Result:
    """Judge what was observed and return the result. An exercise that was not observed to its end scores nothing."""
    rows = tuple(_judged(item, answers.get(item.exercise.id), reason) for item in posed)
    return Result(
        student=submission.student,
        assignment=submission.assignment,
        path=submission.path,
        status=status,
        score=sum(row.score for row in rows),
        points=sum(row.points for row in rows),
        seconds=round(seconds, 4),
        exercises=rows,
        reason=reason,
    )


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
        tuple(message[:MAX_MESSAGE] for message in verdict.messages),
        round(seconds, 4),
    )
