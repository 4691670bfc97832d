"""Judging what was observed of a submission. Nothing of a learner's runs here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from course_utils.checks.data import Case, decode
from course_utils.checks.examine import judge
from course_utils.checks.exercise import Exercise, Verdict
from course_utils.checks.timelimit import TimeUp, time_limit
from course_utils.grading.controller.contradictions import contradictions
from course_utils.grading.controller.conversation import Answered
from course_utils.grading.controller.posing import Posed
from course_utils.grading.controller.resting import noting, observed
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
    verdict, rests, flags = _verdict(item, answer, reason)
    return ExerciseResult(
        exercise.id,
        verdict.outcome,
        float(verdict.score),
        float(exercise.points),
        verdict.misconceptions,
        tuple(message[:MAX_MESSAGE] for message in verdict.messages),
        round(answer.seconds if answer else 0.0, 4),
        tuple(text[:MAX_MESSAGE] for text in verdict.withheld),
        flags=flags,
        observed=rests,
    )


def _verdict(item: Posed, answer: Answered | None, reason: str) -> tuple[Verdict, tuple[str, ...], tuple[str, ...]]:
    """Return the verdict, and what of the observations it rests on that no number proves, and flags."""
    exercise = item.exercise
    if answer is None or not answer.complete:
        return _unreached(exercise, reason), (), ()
    if not answer.attempted:
        message = f"`{exercise.name}` was not defined, or still holds `...`."
        return Verdict(exercise.id, "not attempted", exercise.points, (message,)), (), ()
    if answer.problem or answer.changed:
        message = answer.problem or _CHANGED.format(" and ".join(answer.changed))
        return Verdict(exercise.id, "incorrect", exercise.points, (message,)), (), ()
    # The cases are made again from their bytes: a judge may not have changed them for the next submission.
    cases = [Case(name, decode(given)) for name, given in item.cases]
    pairs = noting(zip(cases, answer.seen, strict=False))
    try:
        with time_limit(JUDGE_SECONDS):
            verdict = judge(exercise, pairs, answer.warnings)
    except TimeUp:
        return _unreached(exercise, "what was observed could not be judged in time."), (), ()
    flags = contradictions(pairs, answer.told) if verdict.outcome == "correct" else ()
    return verdict, observed(pairs), flags


def _unreached(exercise: Exercise, reason: str) -> Verdict:
    return Verdict(exercise.id, "error", exercise.points, (_UNREACHED.format(reason),))
