"""The second look: what was found right by observing it is run again, in a fresh child and observed in another way."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from msgspec.structs import replace

from course_utils.grading import wire
from course_utils.grading.controller.conversation import Answered
from course_utils.grading.controller.parent import Parents
from course_utils.grading.controller.posing import Posed
from course_utils.grading.controller.running import run
from course_utils.grading.controller.scoring import unfinished
from course_utils.grading.errors import GradingError
from course_utils.grading.submission import ExerciseResult, Result, Submission

# What a second run may take longer than the first, on a busy machine: it has a third of the cases.
MORE_SECONDS = 10.0
MAX_SAID = 300  # characters of what the second verdict says

_chance = random.SystemRandom()

_OTHERWISE = (
    "In a second process, with other cases and observed in another way, the answer was found {}: {} Read the answer."
)
_NOT_AGAIN = "The answer could not be observed a second time ({}). Read it."

Judge = Callable[[Posed, Answered], Future[ExerciseResult]]


def rests(row: ExerciseResult) -> bool:
    """Say whether an exercise has points that rest on what was observed, and no number proves."""
    return bool(row.score and row.observed)


def looked_twice(
    result: Result,
    submission: Submission,
    others: Callable[[], Sequence[Posed]],
    limits: wire.Limits,
    parents: Parents,
    judged: Judge,
) -> Result:
    """Return the result with a flag at each exercise that is right once and not twice. Its scores stay.

    `others` makes the exercises with other cases than the first time. A third of them is tried, which nobody can guess.
    Where no points rest on what was observed, nothing is run. Where the grader itself fails, that is no flag, and the
    result is `unfinished`. Raises nothing.
    """
    names = {row.id for row in result.exercises if rests(row)}
    if not names:
        return result
    found: dict[str, Future[ExerciseResult]] = {}

    def heard(item: Posed, answer: Answered) -> None:
        found[item.exercise.id] = judged(item, answer)

    limits = replace(limits, seconds=min(limits.seconds, result.seconds + MORE_SECONDS))
    reason = ""
    failed: Exception | None = None
    try:
        again = [_third(item) for item in others() if item.exercise.id in names]
        attempt = run(submission, again, limits, parents, heard, second=True)
        reason, failed = attempt.reason, GradingError(attempt.reason) if attempt.failed else None
    except Exception as error:
        failed = error
    flags: dict[str, tuple[str, ...]] = {}
    for name in names:
        try:
            flags[name] = _compared(found[name].result())
        except KeyError:
            if failed is None:
                flags[name] = (_NOT_AGAIN.format(reason[:MAX_SAID].rstrip(".") or "its process ended"),)
        except Exception as error:
            failed = failed or error
    rows = (replace(row, flags=(*row.flags, *flags.get(row.id, ()))) for row in result.exercises)
    result = replace(result, exercises=tuple(rows))
    return result if failed is None else unfinished(result, failed)


def _third(item: Posed) -> Posed:
    """Return an exercise with a third of its cases, one at least, in their order: all of them would double the cost."""
    chosen = _chance.sample(range(len(item.cases)), max(1, round(len(item.cases) / 3)))
    return replace(item, cases=tuple(item.cases[number] for number in sorted(chosen)))


def _compared(second: ExerciseResult) -> tuple[str, ...]:
    if second.outcome == "correct":
        return second.flags
    said = " ".join(second.messages).replace("\n", " ")[:MAX_SAID]
    return (_OTHERWISE.format(second.outcome, said or "nothing is said."), *second.flags)
