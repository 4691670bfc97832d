"""Judging `slope`: the slopes of many cubes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from course_utils.checks.compare import close, counted, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_00_start_here import LESSON
from course_utils.checks.scenes.numbers import numbers


def _cases(seed: int) -> list[Case]:
    signed = numbers(seed, 2, 3)
    fine = numbers(seed, 2, 1, 2, dtype=torch.float64)
    fine[0, 0, 0] = 1 + 0.98 * 2**-24  # single precision takes it for 1
    large = numbers(seed, 4, 3, 2, 11)
    large[3, 1, 0, 4] *= 2000
    given = {
        "five numbers": numbers(seed, 5).abs(),
        "a matrix of both signs": torch.where(torch.arange(6).reshape(2, 3) == seed % 6, 0.0, signed),
        "the same shape, other numbers": numbers(seed + 1, 2, 3),
        "half precision": numbers(seed + 3, 3, dtype=torch.float16),
        "a tensor of no dimension": numbers(seed)[()],
        "float64": fine,
        "four dimensions, one of them large": large,
        "very large numbers": 1e60 * numbers(seed + 2, 2, dtype=torch.float64),  # whose sixth powers are none
    }
    return [Case(name, {"x": Array.of(x), "by columns": name == "a matrix of both signs"}) for name, x in given.items()]


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    x = case.given["x"].tensor().requires_grad_()
    (expected,) = torch.autograd.grad((x**3).sum(), x)
    yield right_value(seen["returned"], expected, "What you returned")
    now, before = seen["x"], case.given["x"]
    other = not isinstance(now, Array) or (now.shape, now.dtype) != (before.shape, before.dtype)
    what = "the shape or the dtype of x" if other else "the numbers in x"
    yield Finding("input", now == before, f"Your function changed {what}.")


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, first = seen[0]
    numel = case.given["x"].tensor().numel()
    if first["passes"]:
        yield (
            f"For {numel} numbers your function ran {counted(first['passes'])}. One pass gives the slopes "
            f"of all numbers: measuring each by a small change would take {numel} calculations more."
        )
    else:
        yield "Your function ran no backward pass: its slope comes from elsewhere, such as the formula 3 * x**2."


EXERCISE = Exercise(
    id="slope",
    title="The slopes of many cubes",
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
            lambda case, seen: seen["returned"] is None and seen["grad"] is not None and seen["passes"] > 0,
        ),
    ),
    debrief=_debrief,
)
