"""Judging `squash`: save the result, and nothing else."""

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
    second_derivative,
    spread,
)
from course_utils.graph.saved import saved


def _cases(seed: int) -> list[Case]:
    return [
        Case(
            name,
            {
                "x": Array.of(_with_a_zero(spread(seed + n, *shape, dtype=dtype))),
                "direction": Array.of(
                    size * _with_a_zero(spread(seed + n + 9, *(shape[::-1] if turned else shape), dtype=dtype), -1)
                ),
                "transposed": turned,
            },
        )
        for n, (name, shape, dtype, turned, size) in enumerate(
            [
                ("a matrix", (5, 7), torch.float64, False, 1.0),
                ("a transposed matrix", (3, 8), torch.float64, True, 1e4),
                ("one row of float32", (6,), torch.float32, False, 3e-7),
            ]
        )
    ]


def _with_a_zero(tensor: torch.Tensor, place: int = 0) -> torch.Tensor:
    tensor.view(-1)[place] = 0
    return tensor


def _squashed(case: Case) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return value, gradient and second derivative, as autograd has them for the plain formula."""
    x, direction = case.given["x"].tensor(), case.given["direction"].tensor()
    x = (x.t() if case.given["transposed"] else x).double().requires_grad_()
    y = x / (1 + x * x).sqrt()
    (first,) = torch.autograd.grad(y, x, direction.double(), create_graph=True)
    (second,) = torch.autograd.grad(first, x, direction.double())
    return tuple(tensor.detach().to(direction.dtype) for tensor in (y, first, second))


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    y, first, second = _squashed(case)
    yield left_alone(seen)
    yield right_value(seen["returned"], y, "What you returned")
    yield one_function(seen)
    if seen["attached"]:
        yield right_value(seen["gradient"], first, "The gradient of x")
        kept = seen["kept"]
        message = f"Besides the result itself, {kept} bytes are kept for backward; expected none."
        yield Finding("kept", kept <= 8, message)
        yield nothing_on_ctx(seen)
        found = second_derivative(seen["second"], second)
        yield found
        if found.ok:
            text = "Where the result goes into more that bends, the second derivative is wrong: the gradient that your "
            text += "backward returns has lost its way back to the one that came in."
            yield Finding("incoming", seen["through"] is not None, text)
            if seen["through"] is not None:
                yield right_value(seen["through"], first, "The derivative of the gradient for the one that came in")


def _slope(case: Case) -> torch.Tensor:
    """Return the derivative, without the incoming gradient."""
    ones = torch.ones_like(case.given["direction"].tensor())
    return _squashed(Case(case.name, {**case.given, "direction": Array.of(ones)}))[1]


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, it = seen[0]
    x = case.given["x"].tensor().requires_grad_()
    plainly = sum(entry.bytes for entry in saved(x / (1 + x**2).sqrt()))
    yield f"Besides its result your Function keeps {it['kept']} bytes for backward."
    yield f"Written with tensor operations, the graph of the same x would hold {plainly} bytes."


EXERCISE = Exercise(
    id="squash",
    title="Save the result, and nothing else",
    lesson=LESSON,
    difficulty=2,
    minutes=10,
    points=2,
    call="squash(x)",
    counted=True,
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "Square the result. What is 1 minus that square, as an expression in x?",
        "1 - y² = 1 / (1 + x²). So the derivative can be written with y alone. Pass y to save_for_backward.",
        "A class with two static methods. forward computes y, calls ctx.save_for_backward(y) and returns y. backward "
        "takes y from ctx.saved_tensors and returns the incoming gradient times (1 - y²) to the power 1.5. squash "
        "calls the class's apply.",
    ),
    misconceptions=(
        Misconception(
            "the input is kept",
            "Your gradient is right. For it your Function keeps more than its result: the input, or something that "
            "it computed on the way.",
            lambda case, seen: (
                seen["attached"]
                and not seen["attribute"]
                and seen["kept"] > 8
                and one_function(seen).ok
                and close(seen["gradient"], _squashed(case)[1])
            ),
        ),
        Misconception(
            "hung on ctx",
            "You keep a tensor as an attribute of ctx. PyTorch knows of what save_for_backward was given, and of that "
            "alone: it notices no write to your tensor, and the pass does not free it.",
            lambda case, seen: seen["attached"] and seen["attribute"] and close(seen["gradient"], _squashed(case)[1]),
        ),
        Misconception(
            "the derivative alone",
            "Your backward returns the derivative and leaves out the gradient that comes in.",
            lambda case, seen: seen["attached"] and close(seen["gradient"], _slope(case)),
        ),
        Misconception(
            "no return",
            "Your backward gives None for x. A function without `return` returns None.",
            lambda case, seen: seen["attached"] and one_function(seen).ok and seen["gradient"] is None,
        ),
    ),
)
