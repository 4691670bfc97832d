"""Judging `reverse_gradient`: turn the gradient around."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from course_utils.checks.compare import close
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Misconception
from course_utils.checks.judges.lesson_08_intermediate_gradients import LESSON
from course_utils.checks.judges.lesson_08_intermediate_gradients.passing import (
    also_beside,
    by_rule,
    cases,
    graph,
    judge,
    only_once,
)


def _reversed(case: Case, gradient: torch.Tensor) -> torch.Tensor:
    return gradient * -float(case.given["strength"])


_turned_alike = by_rule(lambda case, gradient: -gradient)


def _another_arrived(seen: Observation, times: float) -> bool:
    """Return whether a gradient of ones arrived so many times at what a second call was given."""
    return close(seen["another"], torch.full((2, 3), times))


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    yield "Passes through your result came out turned around, and those through x beside it as they went in."
    yield "A hook on x itself would have changed both, because it sees the sum of what comes from all uses."


EXERCISE = Exercise(
    id="reverse_gradient",
    title="Turn the gradient around",
    lesson=LESSON,
    difficulty=2,
    minutes=12,
    points=2,
    call="reverse_gradient(x, strength)",
    reaches=("register_prehook",),
    cases=cases(
        "strength",
        (0.7, 25.1, 1.4),  # in float64 none of these is what float32 makes of it
        lambda strength: 2 - 3 * strength,  # of the other sign, where the strength is not small
        {"a negative strength": -1.5, "a strength of 0": 0.0},
        {"x a leaf, float64": 1e-60, "a negative strength": 1e5},  # the small ones are zero in float32
    ),
    judge=judge(_reversed, 1e-9),
    hints=(
        "Two things are asked of one tensor: the numbers of x, and another gradient. Whatever changes the gradient "
        "must not sit on x itself, because x may have other uses.",
        "Make a new tensor with the numbers of x, by an operation whose derivative is 1. A hook may sit on that one. "
        "But not on a tensor that requires no gradient.",
        "y = x.view_as(x) or x * 1.0 makes a new tensor. If y.requires_grad, then y.register_hook with a function "
        "that returns -strength times the gradient. Return y.",
    ),
    debrief=_debrief,
    misconceptions=(
        Misconception(
            "a hook on x",
            "Uses of x that do not go through your result get a changed gradient, too. What changes the gradient sits "
            "on x itself.",
            also_beside(_reversed),
        ),
        Misconception(
            "the numbers are negated",
            "Your function changes the numbers: it returns x times -1, or times minus the strength. Only the gradient "
            "is to be multiplied.",
            lambda case, seen: (
                isinstance(seen["returned"], Array)
                and any(close(seen["returned"], by * graph(case)[1].detach()) for by in (-1.0, -case.given["strength"]))
            ),
        ),
        Misconception(
            "without the strength",
            "Your gradient is turned around, and its size is as before: the strength plays no part.",
            lambda case, seen: _turned_alike(case, seen) and _another_arrived(seen, -1.0),
        ),
        Misconception(
            "zero is none",
            "With a strength of 0 the gradient arrives turned around, and whole. Expected is 0 times the gradient. "
            "With other strengths your answer is right.",
            lambda case, seen: (
                case.given["strength"] == 0
                and _turned_alike(case, seen)
                and _another_arrived(seen, -case.given["another"])
            ),
        ),
        Misconception(
            "the latest strength",
            "After another call, with another strength, passes through the earlier result used that one's. Each "
            "result has to keep its own strength.",
            by_rule(lambda case, gradient: -case.given["another"] * gradient),
        ),
        Misconception(
            "only once",
            "The first pass through your result was right. In a later one the same gradient arrived as it was: what "
            "turns it around was gone by then.",
            only_once(_reversed),
        ),
        Misconception(
            "not turned around",
            "Your gradient is multiplied by the strength, and not by minus the strength.",
            lambda case, seen: (
                by_rule(lambda case, gradient: case.given["strength"] * gradient)(case, seen)
                and _another_arrived(seen, case.given["another"])
            ),
        ),
    ),
)
