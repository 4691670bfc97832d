"""Judging `first_gradient`: predict a gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_00_start_here import LESSON

_RATE = 0.1


def _cube(x: torch.Tensor) -> torch.Tensor:
    return x * x * x


def _parabola(x: torch.Tensor) -> torch.Tensor:
    return x * x + 2 * x


def _slope(function: Callable[[torch.Tensor], torch.Tensor], x: float) -> float:
    at = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(function(at), at)
    return gradient.item()


def _slope_if_moved(x: float) -> float:
    """Return the slope of the last line where x would be, had the step found the gradient of the first."""
    return _slope(_parabola, x - _RATE * _slope(_cube, x))


def _cases(seed: int) -> list[Case]:
    return [Case("", {"x": 3.0})]


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    finding = right_value(seen["value"], _slope(_parabola, case.given["x"]), "Your prediction")
    # The right number would end the prediction, so the message keeps it.
    unknown = "That is not what x.grad holds after the last line. What is in x, and what in x.grad, just before it?"
    yield finding if finding.prop != "value" or finding.ok else Finding("value", False, unknown)


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    yield (
        "zero_grad() had cleared the 27 of the first pass, so step() found None, and x stayed 3. There x*x has the "
        "slope 2*x = 6, and 2*x has the slope 2. Both terms depend on x, so backward() adds the two: x.grad holds 8."
    )


EXERCISE = Exercise(
    id="first_gradient",
    title="Predict a gradient",
    lesson=LESSON,
    difficulty=1,
    minutes=4,
    points=1,
    call=None,
    cases=_cases,
    judge=_judge,
    hints=(
        "Write two numbers beside each line: what is in x after it, and what in x.grad. Which lines change which?",
        "zero_grad() clears what the first pass has left. What does step() find then, and what is in x when y is "
        "computed? The last pass brings the slope of y there.",
        "step() finds None, so x stays 3, and x.grad is empty when the last pass begins. The slope of x*x is 2*x, and "
        "that of 2*x is 2. Evaluate 2*x + 2 at x = 3.",
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
        Misconception(
            "the step moved it",
            "That would be the slope at x = 0.3, as if step() had moved x. What did step() find in x.grad?",
            lambda case, seen: close(seen["value"], _slope_if_moved(case.given["x"])),
        ),
        Misconception(
            "never cleared",
            "That number has the 27 of the first pass in it. zero_grad() stands between the two passes.",
            lambda case, seen: any(
                close(seen["value"], _slope(_cube, case.given["x"]) + last)
                for last in (_slope(_parabola, case.given["x"]), _slope_if_moved(case.given["x"]))
            ),
        ),
    ),
    debrief=_debrief,
)
