"""Judging `log_cosh`: a second derivative that was lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_10_custom_functions import LESSON
from course_utils.checks.judges.lesson_10_custom_functions.functions import (
    left_alone,
    nothing_on_ctx,
    one_function,
    spread,
    to_rounding,
)


def _cases(seed: int) -> list[Case]:
    shapes = {"a matrix, transposed": ((2, 5), 1.0), "one row, long gradients": ((7,), 1e4)}
    return [
        Case(
            name,
            {
                "x": Array.of(_with_a_zero(spread(seed + n, *shape))),
                "direction": Array.of(size * spread(seed + n + 3, *shape)),
                "transposed": len(shape) == 2,
            },
        )
        for n, (name, (shape, size)) in enumerate(shapes.items())
    ]


def _with_a_zero(x: torch.Tensor) -> torch.Tensor:
    x.view(-1)[0] = 0
    return x


def _log_cosh(case: Case) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return value and three derivatives, each weighted by the direction, as autograd has them."""
    x, direction = case.given["x"].tensor().requires_grad_(), case.given["direction"].tensor()
    y = value = x.cosh().log()
    derivatives = []
    for _ in range(3):
        (y,) = torch.autograd.grad(y, x, direction, create_graph=True)
        derivatives.append(y.detach())
    return value.detach(), derivatives


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    y, derivatives = _log_cosh(case)
    yield left_alone(seen)
    yield right_value(seen["returned"], y, "What you returned")
    yield one_function(seen)
    if not seen["attached"]:
        return
    yield nothing_on_ctx(seen)
    if "the incoming gradient" in seen["changed"]:  # what it was changed to came in where a derivative was taken
        return
    for number, right in enumerate(derivatives):
        which = ("first", "second", "third")[number]
        if number >= len(seen["derivatives"]):
            before = ("", "first", "second")[number]
            message = f"There is no {which} derivative: the {before} one has no graph that leads to x."
            yield Finding(f"{which} derivative", False, message)
            return
        found = to_rounding(seen["derivatives"][number], right, f"The {which} derivative")
        yield Finding(f"{which} derivative", found.ok, found.message)
    if all(close(mine, right) for mine, right in zip(seen["derivatives"], derivatives, strict=True)):
        found = to_rounding(seen["times x"], _times_x(case), "The second derivative of log_cosh(x) * x")
        yield Finding("behind another", found.ok, found.message)


def _times_x(case: Case) -> torch.Tensor:
    """Return the second derivative of log cosh x times x, weighted by the direction twice."""
    x, direction = case.given["x"].tensor().requires_grad_(), case.given["direction"].tensor()
    (first,) = torch.autograd.grad(x.cosh().log() * x, x, direction, create_graph=True)
    second: torch.Tensor = torch.autograd.grad(first, x, direction)[0]
    return second


def _ends_after(case: Case, seen: Observation, count: int) -> bool:
    if not seen["attached"] or len(seen["derivatives"]) != count:
        return False
    right = _log_cosh(case)[1]
    return all(close(mine, one) for mine, one in zip(seen["derivatives"], right, strict=False))


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    _, it = seen[0]
    yield f"The check took {len(it['derivatives'])} derivatives through your one node, each recorded for the next."
    yield "What backward computes from a saved input or output is recorded; a saved intermediate leads nowhere."


EXERCISE = Exercise(
    id="log_cosh",
    title="A second derivative that was lost",
    lesson=LESSON,
    difficulty=3,
    minutes=12,
    points=3,
    call="log_cosh(x)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "The saved tanh is a number without history. Where would the second derivative of log cosh have to come from?",
        "What is saved must be an input or an output of the Function: those lead back to x. Anything else must be "
        "computed from them inside backward, where it is recorded.",
        "Save x. In backward compute x.tanh() and return it times the incoming gradient. With create_graph=True "
        "PyTorch records these two operations, and so knows their derivatives.",
    ),
    misconceptions=(
        Misconception(
            "an intermediate is saved",
            "The first derivative is right and leads nowhere: from what backward computed no recorded way leads to x.",
            lambda case, seen: _ends_after(case, seen, 1),
        ),
        Misconception(
            "the derivative alone",
            "Your backward returns the derivative and leaves out the gradient that comes in.",
            lambda case, seen: (
                seen["attached"]
                and bool(seen["derivatives"])
                and close(seen["derivatives"][0], case.given["x"].tensor().tanh())
            ),
        ),
        Misconception(
            "only one step farther",
            "First and second derivative are right, and the third is missing. The second one leads nowhere.",
            lambda case, seen: _ends_after(case, seen, 2),
        ),
    ),
)
