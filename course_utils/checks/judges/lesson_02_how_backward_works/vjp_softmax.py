"""Judging `vjp_softmax`: VJP of softmax from its output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from course_utils.checks.compare import OF_VALUES, close, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_02_how_backward_works import LESSON
from course_utils.checks.judges.lesson_02_how_backward_works.left_alone import left_alone
from course_utils.checks.scenes.numbers import numbers


def _cases(seed: int) -> Iterator[Case]:
    shapes: dict[str, tuple[tuple[int, ...], int]] = {
        "the last dimension": ((2, 5), 1),
        "the first dimension": ((5, 5), 0),
        "a square, along its last dimension": ((4, 4), 1),
        "counted from the end": ((2, 3, 5), -2),
        "a cube, along the middle": ((3, 3, 3), 1),
        "the last one, counted from the end": ((2, 1, 5), -1),
        "a vector": ((5,), 0),
        "the first of three dimensions, which has one number": ((1, 3, 5), 0),
        "the last dimension, other numbers": ((2, 5), 1),
        "float32": ((4, 3), 0),
        "one number far ahead": ((2, 4), 1),
    }
    leaves: dict[str, list[str]] = {"the first dimension": ["y"], "a vector": ["y", "v"]}
    for offset, (name, (shape, dim)) in enumerate(shapes.items()):
        dtype = torch.float32 if name == "float32" else torch.float64
        x = numbers(seed + 10 * offset, *shape, dtype=dtype)
        if name == "one number far ahead":  # the others are exactly 0 after the softmax
            x = 2000 * x
        size = {"the last dimension": 1e6, "counted from the end": 1e-9}.get(name, 1.0)
        v = size * numbers(seed + 10 * offset + 1, *shape, dtype=dtype)
        if name == "counted from the end":  # no quotient by v either
            v[..., 0] = 0
        given = {"y": Array.of(x.softmax(dim)), "v": Array.of(v), "dim": dim, "strided": name == "the first dimension"}
        yield Case(name, {**given, "leaves": leaves.get(name, [])})


def _softmax_vjp(case: Case, dim: int | None = None) -> torch.Tensor:
    y, v = case.given["y"].tensor(), case.given["v"].tensor()
    along = case.given["dim"] if dim is None else dim
    gradient: torch.Tensor = torch.ops.aten._softmax_backward_data(v, y, along, y.dtype)  # PyTorch's own node
    return gradient


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    yield right_value(seen["returned"], _softmax_vjp(case), "What you returned")
    yield from left_alone(seen)


def _diagonal(case: Case, seen: Observation) -> bool | None:
    """Tell it where each dimension has several numbers: a sum over a dimension of one is the number itself."""
    if 1 in case.given["y"].shape:
        return None
    y, v = case.given["y"].tensor(), case.given["v"].tensor()
    x = torch.logit(y).requires_grad_()
    (gradient,) = torch.autograd.grad(x.sigmoid(), x, v)  # each number by itself
    return close(seen["returned"], gradient)


def _one_sum(case: Case, seen: Observation) -> bool:
    y, v = case.given["y"].tensor(), case.given["v"].tensor()
    return close(seen["returned"], y * v - y * (y * v).sum())


def _without_factor(case: Case, seen: Observation) -> bool:
    y, v = case.given["y"].tensor(), case.given["v"].tensor()
    return close(seen["returned"], v - (v * y).sum(case.given["dim"], keepdim=True))


def _once_more(case: Case, seen: Observation) -> bool:
    x = case.given["y"].tensor().requires_grad_()
    (gradient,) = torch.autograd.grad(x.softmax(case.given["dim"]), x, case.given["v"].tensor())
    return close(seen["returned"], gradient)


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    sizes = [case.given["y"].tensor().numel() for case, _ in seen]
    yield (
        f"A softmax of {max(sizes)} numbers has a Jacobian with {max(sizes) ** 2} entries. Its product with v needs y "
        f"and v alone: a sum along dim, and no matrix."
    )
    yield "The node saves y. Had it saved the input, backward would have to work out the exponentials again."


EXERCISE = Exercise(
    id="vjp_softmax",
    title="VJP of softmax from its output",
    lesson=LESSON,
    difficulty=3,
    minutes=20,
    points=3,
    call="vjp_softmax(y, v, dim)",
    cases=_cases,
    judge=_judge,
    hints=(
        "Every output of a softmax depends on every input along dim: raising one lowers all the others.",
        "For one vector, dy[i]/dx[j] is y[i] * (1 - y[i]) where i = j, and -y[i] * y[j] elsewhere. Multiply by "
        "v[i], sum over i.",
        "For one vector the sum gives y[j] * (v[j] - s), where s is the sum of v[i] * y[i]. For a tensor, s is "
        "summed along dim, "
        "and keepdim=True lets it broadcast.",
    ),
    misconceptions=(
        Misconception(
            "only the diagonal",
            "Your gradient treats each number by itself, with y * (1 - y). It leaves out that each output of a "
            "softmax "
            "depends on all inputs along dim.",
            _diagonal,
            among=OF_VALUES,
        ),
        Misconception(
            "softmax once more",
            "Your gradient is that of a softmax applied to y. But y is the output of the softmax already.",
            _once_more,
            among=OF_VALUES,
        ),
        Misconception(
            "dim is ignored",
            "Your gradient is that of a softmax along the last dimension, and not along dim.",
            lambda case, seen: close(seen["returned"], _softmax_vjp(case, -1)),
            among=OF_VALUES,
        ),
        Misconception(
            "summed over everything",
            "You summed over the whole tensor. Each vector along dim is a softmax of its own, with a sum of its own.",
            _one_sum,
            among=OF_VALUES,
        ),
        Misconception(
            "the factor y is missing",
            "You subtracted the weighted sum from v and returned that. What each number of y contributes is still "
            "to be multiplied by that number.",
            _without_factor,
            among=OF_VALUES,
        ),
    ),
    debrief=_debrief,
)
