"""Judging `first_gradient`: predict a gradient."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_00_start_here import LESSON


def _parabola(x: torch.Tensor) -> torch.Tensor:
    return x * x + 2 * x


def _cases(seed: int) -> list[Case]:
    return [Case("", {"x": 3.0})]


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    x = torch.tensor(case.given["x"], requires_grad=True)
    (expected,) = torch.autograd.grad(_parabola(x), x)
    finding = right_value(seen["value"], expected.item(), "Your prediction")
    # The right number would end the prediction, so the message keeps it.
    unknown = "That is not what x.grad holds after y.backward(). Work out dy/dx at x = 3."
    yield finding if finding.prop != "value" or finding.ok else Finding("value", False, unknown)


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    yield (
        "At x = 3 the term x*x has the slope 2*x = 6, and 2*x has the slope 2. Both terms depend on x, "
        "so backward() adds the two: x.grad holds 8."
    )


EXERCISE = Exercise(
    id="first_gradient",
    title="Predict a gradient",
    lesson=LESSON,
    difficulty=1,
    minutes=2,
    points=1,
    call=None,
    cases=_cases,
    judge=_judge,
    hints=(
        "x.grad is the slope of y at x = 3: how much y changes for a small change of x.",
        "Differentiate x*x and 2*x separately, add the two, then put in x = 3.",
        "The derivative of x*x is 2*x, and that of 2*x is 2. Evaluate 2*x + 2 at x = 3.",
    ),
    misconceptions=(
        Misconception(
            "the value",
            "That number is y itself, at x = 3. x.grad holds the derivative of y with respect to x.",
            lambda case, seen: close(seen["value"], _parabola(torch.tensor(case.given["x"]))),
        ),
        Misconception(
            "one term only",
            "That number is the slope of x*x alone, at x = 3. The term 2*x has a slope too.",
            lambda case, seen: close(seen["value"], 2 * case.given["x"]),
        ),
    ),
    debrief=_debrief,
)
