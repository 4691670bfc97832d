"""From verdicts to the result of a submission: rows of plain data, also for what was never judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from course_utils.grading.controller import orders
from course_utils.grading.controller.conversation import Answered
from course_utils.grading.controller.posing import Posed
from course_utils.grading.controller.running import Attempt
from course_utils.grading.errors import GradingError
from course_utils.grading.submission import ExerciseResult, Result, Submission
from course_utils.grading.wire import MAX_TEXT

_CHANGED = "Your code changed {} while it was being checked. Answers are observed with PyTorch as it is."
_UNREACHED = "This exercise could not be checked: {}"
_UNFINISHED = (
    "The grader failed on a part of this submission, through no fault of its author: {}. What was found before stands."
)


def settled(item: Posed, answer: Answered) -> ExerciseResult | None:
    """Return the row of an answer that needs no judge, as it is none, or changes what it is observed with."""
    if not answer.attempted:
        message = f"`{item.exercise.name}` was not defined, or still holds `...`."
        return _missing(item, answer, (message,))
    if answer.problem or answer.changed:
        message = answer.problem or _CHANGED.format(" and ".join(answer.changed))
        return _row(item, answer, "incorrect", 0.0, messages=(message,))
    return None


def verdict(item: Posed, answer: Answered, found: orders.Verdict) -> ExerciseResult:
    """Return the row of an answer that was judged."""
    if found.outcome == "not attempted":
        return _missing(item, answer, found.messages)
    row = _row(item, answer, found.outcome, found.score, found.misconceptions, found.messages, found.withheld)
    return replace(row, flags=found.flags, observed=found.observed)


def _missing(item: Posed, answer: Answered, messages: tuple[str, ...]) -> ExerciseResult:
    """Return the row of an answer that is not there: an error where its cell ended with one."""
    if answer.fault:
        return _row(item, answer, "error", 0.0, messages=(answer.fault, *messages))
    return _row(item, answer, "not attempted", 0.0, messages=messages)


def unreached(item: Posed, answer: Answered | None, reason: str) -> ExerciseResult:
    """Return the row of an answer that was not observed to its end, or not judged, for this reason: 0 points."""
    return _row(item, answer, "error", 0.0, messages=(_UNREACHED.format(reason),))


def result_of(
    submission: Submission,
    posed: Sequence[Posed],
    attempt: Attempt,
    judged: Mapping[str, ExerciseResult],
) -> Result:
    """Return the result of a submission, from what was `judged` as it came. The rest was not observed to its end."""
    rows = tuple(
        judged.get(item.exercise.id) or unreached(item, attempt.answers.get(item.exercise.id), attempt.reason)
        for item in posed
    )
    return Result(
        student=submission.student,
        assignment=submission.assignment,
        path=submission.path,
        status=attempt.status,
        score=sum(row.score for row in rows),
        points=sum(row.points for row in rows),
        seconds=round(attempt.seconds, 4),
        exercises=rows,
        reason=attempt.reason,
        number=submission.number,
        detail=submission.detail,
        again=attempt.again,
    )


def unfinished(result: Result, error: Exception) -> Result:
    """Return the result as one that the grader did not come to the end of. It says nothing of the answers.

    It is tried again where a process or the machine failed; another error would come again.
    """
    again = result.again or isinstance(error, GradingError | OSError | MemoryError)
    if result.status != "graded":
        return replace(result, again=again)
    why = str(error) if isinstance(error, GradingError) else f"{type(error).__name__}: {error}"
    reason = _UNFINISHED.format(why[:MAX_TEXT].rstrip("."))
    return replace(result, status="crashed", reason=reason, again=again)


def flagged(result: Result, flags: Mapping[str, tuple[str, ...]]) -> Result:
    """Return the result with these sentences at what was attempted, by exercise."""
    rows = tuple(
        row if row.outcome == "not attempted" else replace(row, flags=(*row.flags, *flags.get(row.id, ())))
        for row in result.exercises
    )
    return replace(result, exercises=rows)


def _row(
    item: Posed,
    answer: Answered | None,
    outcome: str,
    score: float,
    misconceptions: tuple[str, ...] = (),
    messages: tuple[str, ...] = (),
    withheld: tuple[str, ...] = (),
) -> ExerciseResult:
    points, seconds = float(item.exercise.points), round(answer.seconds if answer else 0.0, 4)
    return ExerciseResult(item.exercise.id, outcome, score, points, misconceptions, messages, seconds, withheld)
