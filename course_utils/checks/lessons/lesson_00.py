"""Exercises of lesson 00: one prediction and one function, to learn how exercises work."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception

LESSON = "00_start_here"


def _parabola(x: torch.Tensor) -> torch.Tensor:
    return x * x + 2 * x


def _one_number(seed: int) -> list[Case]:
    return [Case("", {"x": 3.0})]


def _judge_prediction(case: Case, seen: Observation) -> Iterator[Finding]:
    x = torch.tensor(case.given["x"], requires_grad=True)
    (expected,) = torch.autograd.grad(_parabola(x), x)
    finding = right_value(seen["value"], expected, "Your prediction")
    # The right number would end the prediction, so the message keeps it.
    unknown = "That is not what x.grad holds after y.backward(). Work out dy/dx at x = 3."
    yield finding if finding.prop != "value" or finding.ok else Finding("value", False, unknown)


first_gradient = Exercise(
    id="first_gradient",
    title="Predict a gradient",
    lesson=LESSON,
    difficulty=1,
    minutes=2,
    points=1,
    call=None,
    cases=_one_number,
    judge=_judge_prediction,
    hints=(
        "x.grad is the slope of y at x = 3: how much y changes for a small change of x.",
        "Differentiate x*x and 2*x separately, add the two, then put in x = 3.",
        "The derivative of x*x is 2*x, and that of 2*x is 2. Evaluate 2*x + 2 at x = 3.",
    ),
    misconceptions=(
        Misconception(
            "the value",
            "You gave y itself. x.grad holds the derivative of y with respect to x.",
            lambda case, seen: close(seen["value"], _parabola(torch.tensor(case.given["x"]))),
        ),
        Misconception(
            "one term only",
            "You differentiated x*x and left out the term 2*x, which has a slope too.",
            lambda case, seen: close(seen["value"], 2 * case.given["x"]),
        ),
    ),
)


def _some_vectors(seed: int) -> list[Case]:
    generator = torch.Generator().manual_seed(seed)
    sizes = {"five numbers": (5,), "a matrix": (2, 3)}
    return [
        Case(name, {"x": Array.of(torch.rand(size, generator=generator) * 2 + 0.5)}) for name, size in sizes.items()
    ]


def _judge_slope(case: Case, seen: Observation) -> Iterator[Finding]:
    x = case.given["x"].tensor().requires_grad_()
    (expected,) = torch.autograd.grad((x**3).sum(), x)
    yield right_value(seen["returned"], expected, "What you returned")
    yield Finding("input", close(seen["x"], x.detach()), "Your function changed the numbers in x.")


slope = Exercise(
    id="slope",
    title="Write a function",
    lesson=LESSON,
    difficulty=1,
    minutes=5,
    points=1,
    call="slope(x)",
    cases=_some_vectors,
    judge=_judge_slope,
    hints=(
        "The lesson computed a gradient with y.backward() and x.grad. backward() starts from one number.",
        "Make one number out of x**3 by summing it, then ask for its gradient with respect to x.",
        "Compute (x**3).sum(), call backward() on it, and return x.grad. torch.autograd.grad does it in one step.",
    ),
    misconceptions=(
        Misconception(
            "the cubes",
            "You returned the cubes themselves. The exercise asks for their slope, the gradient with respect to x.",
            lambda case, seen: close(seen["returned"], case.given["x"].tensor() ** 3),
        ),
        Misconception(
            "backward returns nothing",
            "You returned None. backward() itself returns None: it leaves the gradient in x.grad.",
            lambda case, seen: seen["returned"] is None and seen["grad"] is not None,
        ),
    ),
)

EXERCISES = (first_gradient, slope)
