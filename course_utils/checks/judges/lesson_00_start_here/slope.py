"""Judging `slope`: write a function."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_00_start_here import LESSON


def _cases(seed: int) -> list[Case]:
    generator = torch.Generator().manual_seed(seed)
    sizes = {"five numbers": (5,), "a matrix": (2, 3)}
    return [
        Case(name, {"x": Array.of(torch.rand(size, generator=generator) * 2 + 0.5)}) for name, size in sizes.items()
    ]


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    x = case.given["x"].tensor().requires_grad_()
    (expected,) = torch.autograd.grad((x**3).sum(), x)
    yield right_value(seen["returned"], expected, "What you returned")
    yield Finding("input", close(seen["x"], x.detach()), "Your function changed the numbers in x.")


EXERCISE = Exercise(
    id="slope",
    title="Write a function",
    lesson=LESSON,
    difficulty=1,
    minutes=5,
    points=1,
    call="slope(x)",
    cases=_cases,
    judge=_judge,
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
