"""Judging what was observed of an exercise, from its bytes: in a process of its own, which `judging_child` keeps."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from course_utils.checks import examine
from course_utils.checks.data import Case, Raised, TimedOut, decode
from course_utils.checks.exercise import Seen
from course_utils.checks.registry import exercises_of
from course_utils.checks.timelimit import TimeUp, time_limit
from course_utils.grading.controller import orders
from course_utils.grading.controller.bounds import TooMany, look
from course_utils.grading.controller.contradictions import contradictions
from course_utils.grading.controller.resting import noting, observed

# Messages name what was observed, which a child may have made long. All of them are kept, and shown on pages.
MAX_MESSAGE = 10_000
_STARVED = "to judge what was observed takes too much memory."
TOO_MUCH = "the observations of this notebook are together too large to be judged"


class NoObservation(ValueError):
    """What came is no observation. The message says what it is instead."""


def judge(order: orders.Judge) -> orders.Verdict | orders.Failed:
    """Decode and judge. Raises nothing: what cannot be judged is Failed."""
    exercise = next(one for one in exercises_of(order.item.exercise.lesson) if one.id == order.item.exercise.id)
    try:
        with time_limit(order.seconds):
            pairs = noting(_pairs(order))
            verdict = examine.judge(exercise, pairs, order.warnings)
    except TimeUp:
        return orders.Failed("timeout", "what was observed could not be judged in time.")
    except MemoryError:
        return orders.Failed("memory", _STARVED)
    except NoObservation as error:
        return orders.Failed("crashed", f"what came is no observation: {error}")
    if any(finding.prop == "judged" and "(MemoryError)" in finding.message for finding in verdict.findings):
        return orders.Failed("memory", _STARVED)
    return orders.Verdict(
        verdict.outcome,
        float(verdict.score),
        verdict.misconceptions,
        tuple(message[:MAX_MESSAGE] for message in verdict.messages),
        tuple(text[:MAX_MESSAGE] for text in verdict.withheld),
        contradictions(pairs, order.told) if verdict.outcome == "correct" else (),
        observed(pairs),
    )


def _pairs(order: orders.Judge) -> Iterator[tuple[Case, Seen]]:
    """Yield each case with what was seen in it. Raises NoObservation.

    Cases may be missing after one that ran out of time: no other was tried.
    """
    seen: Seen = {}
    for (name, given), message in zip(order.item.cases, order.seen, strict=False):
        seen = Raised("TooLarge", TOO_MUCH) if message is None else _decoded(message)
        yield Case(name, decode(given)), seen
    if len(order.seen) < len(order.item.cases) and not isinstance(seen, TimedOut):
        raise NoObservation(f"it has {len(order.seen)} cases of {len(order.item.cases)}")


def _decoded(message: bytes) -> Seen:
    try:
        look(message)
        seen = decode(message)
    except TooMany:
        return Raised("TooLarge", TOO_MUCH)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError) as error:
        raise NoObservation(str(error)) from error
    if not isinstance(seen, dict | Raised | TimedOut):
        raise NoObservation(f"it is of type {type(seen).__name__}")
    return seen
