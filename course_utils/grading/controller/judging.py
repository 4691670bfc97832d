"""Judging what was observed of a submission. Nothing of a learner's runs here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from course_utils.checks.data import Case, decode
from course_utils.checks.examine import judge
from course_utils.checks.exercise import Exercise, Verdict
from course_utils.checks.timelimit import TimeUp, time_limit
from course_utils.grading.controller.conversation import Answered
from course_utils.grading.controller.posing import Posed
from course_utils.grading.controller.running import Attempt
from course_utils.grading.submission import ExerciseResult, Result, Submission

JUDGE_SECONDS = 20.0
# Messages name what was observed, which a child may have made long. All of them are kept, and shown on pages.
MAX_MESSAGE = 10_000

_CHANGED = "Your code changed {} while it was being checked. Answers are observed with PyTorch as it is."
_UNREACHED = "This exercise could not be checked: {}"


def result_of(
    submission: Submission, posed: Sequence[Posed], attempt: Attempt, judged: Mapping[str, ExerciseResult]
) -> Result:
    """Return the result of a submission, from what was `judged` as it came. The rest was not observed to its end."""
    rows = tuple(
        judged.get(item.exercise.id) or judge_one(item, attempt.answers.get(item.exercise.id), attempt.reason)
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
    )


def judge_one(item: Posed, answer: Answered | None, reason: str = "") -> ExerciseResult:
    """Judge what was observed of one exercise. What was not observed to its end scores nothing, for this `reason`."""
    exercise = item.exercise
    verdict = _verdict(item, answer, reason)
    return ExerciseResult(
        exercise.id,
        verdict.outcome,
        float(verdict.score),
        float(exercise.points),
        verdict.misconceptions,
        tuple(message[:MAX_MESSAGE] for message in verdict.messages),
        round(answer.seconds if answer else 0.0, 4),
        tuple(text[:MAX_MESSAGE] for text in verdict.withheld),
    )


def _verdict(item: Posed, answer: Answered | None, reason: str) -> Verdict:
    exercise = item.exercise
    if answer is None or not answer.complete:
        return _unreached(exercise, reason)
    if not answer.attempted:
        message = f"`{exercise.name}` was not defined, or still holds `...`."
        return _missing(exercise, answer, message)
    if answer.problem or answer.changed:
        message = answer.problem or _CHANGED.format(" and ".join(answer.changed))
        return Verdict(exercise.id, "incorrect", exercise.points, (message,))
    # The cases are made again from their bytes: a judge may not have changed them for the next submission.
    pairs = [(Case(name, decode(given)), seen) for (name, given), seen in zip(item.cases, answer.seen, strict=False)]
    try:
        with time_limit(JUDGE_SECONDS):
            verdict = judge(exercise, pairs, answer.warnings)
    except TimeUp:
        return _unreached(exercise, "what was observed could not be judged in time.")
    return _missing(exercise, answer, *verdict.messages) if verdict.outcome == "not attempted" else verdict


def _missing(exercise: Exercise, answer: Answered, *messages: str) -> Verdict:
    """Return the verdict on an answer that is not there: an error where its cell ended with one."""
    said = (answer.fault, *messages) if answer.fault else messages
    return Verdict(exercise.id, "error" if answer.fault else "not attempted", exercise.points, said)


def _unreached(exercise: Exercise, reason: str) -> Verdict:
    return Verdict(exercise.id, "error", exercise.points, (_UNREACHED.format(reason),))
