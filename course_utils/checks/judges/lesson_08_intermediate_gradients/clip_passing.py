"""Judging `clip_passing`: clip inside the graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from course_utils.checks.compare import close
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Misconception
from course_utils.checks.judges.lesson_08_intermediate_gradients import LESSON
from course_utils.checks.judges.lesson_08_intermediate_gradients.passing import (
    also_beside,
    by_rule,
    cases,
    gradients,
    judge,
    only_once,
    reached,
)


def _clipped(case: Case, gradient: torch.Tensor) -> torch.Tensor:
    size, most = float(gradient.norm()), float(case.given["max_norm"])
    return gradient if size <= most else gradient * (most / size)


def _clamped(case: Case, gradient: torch.Tensor) -> torch.Tensor:
    return gradient.clamp(-case.given["max_norm"], case.given["max_norm"])


def _row_by_row(case: Case, gradient: torch.Tensor) -> torch.Tensor:
    """Clip along the last axis."""
    if not gradient.dim():
        return _clipped(case, gradient)
    rows = gradient.reshape(-1, gradient.shape[-1])
    return torch.stack([_clipped(case, row) for row in rows]).reshape(gradient.shape)


def _scales_small_ones(case: Case, seen: Observation) -> bool | None:
    """Return whether a gradient that is short enough comes out longer, in its own direction."""
    if not reached(case, seen):
        return False
    if 1e-7 * case.given["down"].tensor().norm() > case.given["max_norm"]:  # none of the case's gradients is short
        return None
    whole, zeros, small = seen["through"]
    if close(zeros, small.tensor()):  # the same for whatever comes by
        return False
    short = case.given["down"].tensor().norm() <= case.given["max_norm"]
    as_they_came = gradients(case, lambda case, gradient: gradient)["through"]
    return _longer(small, as_they_came[2]) or (bool(short) and _longer(whole, as_they_came[0]))


def _longer(received: Value, gradient: torch.Tensor) -> bool:
    factor = float(received.tensor().norm() / gradient.norm()) if isinstance(received, Array) else 0.0
    return factor > 1.001 and close(received, factor * gradient)


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    yield "A long gradient came out with the norm max_norm; a short one, and zeros, came out as they went in."
    yield "Where your result has two uses, their sum arrived at it, so it was clipped once and not twice."


EXERCISE = Exercise(
    id="clip_passing",
    title="Clip inside the graph",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call="clip_passing(x, max_norm)",
    reaches=("register_prehook",),
    # The norms lie between 2.8 and 5.2: below 6, and their squares above it.
    cases=cases(
        "max_norm",
        (0.8, 1.3, 0.3),
        lambda most: 3 * most,
        {"a gradient that is short enough": 6.0},
        {"x a leaf, float64": 1e60},  # in float32 it overflows
    ),
    judge=judge(_clipped),
    hints=(
        "The norm is known only when the gradient comes by. So the work is done in a function that runs then.",
        "Clipping by norm keeps the direction: all numbers are multiplied by one factor. A gradient that is short "
        "enough passes as it is, and one of zeros must not end in a division by zero.",
        "Make a new tensor from x, as in the exercise before, and put a hook on it. In the hook: factor = "
        "max_norm / gradient.norm(), limited to at most 1 (torch.clamp does it), times the gradient.",
    ),
    debrief=_debrief,
    misconceptions=(
        Misconception(
            "only once",
            "The first pass through your result was right. In a later one the same gradient arrived as it was: what "
            "clips was gone by then.",
            only_once(_clipped),
        ),
        Misconception(
            "number by number",
            "You limit each number by itself. That changes the direction of the gradient, and its norm may still be "
            "larger than max_norm.",
            by_rule(_clamped),
        ),
        Misconception(
            "short ones are stretched",
            "A gradient that is shorter than max_norm comes out longer than it went in. Clipping only shortens.",
            _scales_small_ones,
        ),
        Misconception(
            "row by row",
            "You clip each row of the gradient by its own norm. Asked for is the norm of the whole gradient.",
            by_rule(_row_by_row),
        ),
        Misconception(
            "a hook on x",
            "Uses of x that do not go through your result get a changed gradient, too. What clips sits on x itself.",
            also_beside(_clipped),
        ),
    ),
)
