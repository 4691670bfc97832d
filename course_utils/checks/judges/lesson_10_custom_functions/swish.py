"""Judging `swish`: repair a Function with four faults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_10_custom_functions import LESSON
from course_utils.checks.judges.lesson_10_custom_functions.functions import (
    left_alone,
    one_function,
    spread,
    to_rounding,
)


def _numbers(seed: int, sizes: tuple[int, int], beta: torch.Tensor, large: bool) -> torch.Tensor:
    """Return x with a 0; where asked, with rows whose products with beta are far on either side."""
    x = spread(seed, *sizes)
    x[-1, -1] = 0.0
    if large:
        x[0], x[1] = 1e4 * x[0].abs() * beta.sign(), -1e4 * x[1].abs() * beta.sign()
    return x


def _cases(seed: int) -> list[Case]:
    shapes: dict[str, tuple[tuple[int, ...], bool]] = {
        "one beta": ((), True),
        "a beta for each column": ((4,), True),
        "a beta for each row": ((3, 1), True),
        "beta is frozen": ((4,), False),
        "x is data": ((1, 4), True),
    }
    found = []
    for n, (name, (shape, learned)) in enumerate(shapes.items()):
        sizes = (4, 4) if name in ("a beta for each column", "x is data") else (3, 4)  # who confuses the two is told
        beta = spread(seed + n + 20, *shape)
        if name == "a beta for each row":
            beta[0] = 0.0
        given = {
            "x": Array.of(_numbers(seed + n, sizes, beta, large=name in ("one beta", "beta is frozen"))),
            "beta": Array.of(beta),
            "direction": Array.of(spread(seed + n + 40, *sizes)),
            "learned": learned,
            "data": name == "x is data",
        }
        found.append(Case(name, given))
    return found


def _swish(case: Case, ones: bool = False) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return value and gradients as autograd has them; with ones, the gradients for an incoming gradient of ones."""
    x, beta, direction = (case.given[name].tensor() for name in ("x", "beta", "direction"))
    wanted = [it.requires_grad_() for it, is_wanted in zip((x, beta), _wanted(case), strict=True) if is_wanted]
    y = x * torch.sigmoid(beta * x)
    incoming = torch.ones_like(direction) if ones else direction
    return y.detach(), list(torch.autograd.grad(y, wanted, incoming))


def _wanted(case: Case) -> tuple[bool, bool]:
    """Return whether x and whether beta wants a gradient."""
    return not case.given["data"], case.given["learned"]


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    y, gradients = _swish(case)
    yield left_alone(seen)
    yield right_value(seen["returned"], y, "What you returned")
    yield one_function(seen)
    if not seen["attached"]:
        return
    names = [name for name, is_wanted in zip(("x", "beta"), _wanted(case), strict=True) if is_wanted]
    for name, mine, right in zip(names, seen["gradients"], gradients, strict=True):
        found = to_rounding(mine, right, f"The gradient of {name}")
        yield Finding(f"{name} {found.prop}", found.ok, found.message)
    if "single" in seen:
        found = to_rounding(seen["single"], gradients[1].reshape(1), "With a beta of shape (1,) the gradient of beta")
        yield Finding(f"beta {found.prop}", found.ok, found.message)
    safe = _all_safe(seen, gradients)
    message = "After a write to x or beta, your backward ran and gave other gradients than before, without an error."
    yield Finding("noticed", safe, message)
    message = (
        "After the pass something of yours still holds a tensor, such as an attribute of ctx or of the class. What "
        "save_for_backward gets, and nothing else holds, is freed by a pass."
    )
    yield Finding("freed", not seen["attribute"] and not seen["kept"], message)


def _safe(written: Value, gradients: list[torch.Tensor], own: list[Value]) -> bool:
    """Return whether a pass after a write raised, or gave the right gradients, or at least what it gave before."""
    if not isinstance(written, list) or len(written) != len(gradients):
        return written == "raised"
    return all(
        mine == before or close(mine, right) for mine, right, before in zip(written, gradients, own, strict=True)
    )


def _right_swish(case: Case, seen: Observation) -> bool:
    if not seen["attached"]:
        return False
    return all(close(mine, right) for mine, right in zip(seen["gradients"], _swish(case)[1], strict=True))


def _all_safe(seen: Observation, gradients: list[torch.Tensor]) -> bool:
    return all(_safe(written, gradients, seen["gradients"]) for written in seen["written"])


def _exchanged(case: Case, seen: Observation) -> bool:
    """Return whether beta got the gradient of x, summed to its shape, where x wants none."""
    if not seen["attached"] or not case.given["data"]:
        return False
    x, beta, direction = (case.given[name].tensor() for name in ("x", "beta", "direction"))
    (right,) = torch.autograd.grad(x.requires_grad_() * torch.sigmoid(beta * x), x, direction)
    return close(seen["gradients"][0], right.sum_to_size(beta.shape))


def _beta_alone(case: Case, seen: Observation) -> bool:
    """Return whether x has the right gradient where it wants one, and beta the one for an incoming one of ones."""
    if not seen["attached"] or not case.given["learned"]:
        return False
    *x, _ = _swish(case)[1]
    *_, beta = _swish(case, ones=True)[1]
    *own, last = seen["gradients"]
    return close(last, beta) and all(close(mine, right) for mine, right in zip(own, x, strict=True))


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    raised = sum(written == "raised" for _, it in seen for written in it["written"])
    count = sum(len(it["written"]) for _, it in seen)
    yield f"After {count} writes to x or beta your backward raised {raised} times, and else gave the right gradients."
    yield "Kept as attributes of ctx, both would have been read as they were written, without a word."


EXERCISE = Exercise(
    id="swish",
    title="Repair a Function with four faults",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call="swish(x, beta)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "Run it once with a beta that is one number. Read the error, and count what backward returns, in which order.",
        "Compare each returned gradient with its input: position, shape, and whether the incoming gradient is in it. "
        "Then look at where the tensors are kept.",
        "ctx.save_for_backward(x, beta). backward returns two gradients in the order of forward's inputs, each "
        "multiplied by g. A gradient of the broadcast shape may be returned as it is, or summed by sum_to_size.",
    ),
    misconceptions=(
        Misconception(
            "tensors on ctx",
            "Your gradients are right. But tensors are kept as attributes of ctx: a write to them goes unnoticed, and "
            "they outlive the pass.",
            lambda case, seen: _right_swish(case, seen) and seen["attribute"] and not _all_safe(seen, _swish(case)[1]),
        ),
        Misconception(
            "copies on ctx",
            "Your gradients are right, and a write to x or beta is noticed or does them no harm. But tensors are kept "
            "as attributes of ctx, which no pass frees.",
            lambda case, seen: _right_swish(case, seen) and seen["attribute"] and _all_safe(seen, _swish(case)[1]),
        ),
        Misconception(
            "the other way round",
            "Your backward returns for x what does not fit the shape of x. Gradients come in the order of forward's "
            "inputs: that of x first, then that of beta.",
            _exchanged,
            ended=("RuntimeError",),
            ended_saying="returned an invalid gradient at index 0",
        ),
        Misconception(
            "beta without g",
            "The gradient of beta is what it would be if the incoming gradient were one everywhere.",
            _beta_alone,
        ),
        Misconception(
            "without g",
            "Your gradients are what they would be if the incoming gradient were one everywhere.",
            lambda case, seen: (
                seen["attached"]
                and all(
                    close(mine, alone)
                    for mine, alone in zip(seen["gradients"], _swish(case, ones=True)[1], strict=True)
                )
            ),
        ),
        Misconception(
            "summed too far",
            "Your gradient of beta fits some shapes of beta and raises for others. It was summed over too many "
            "numbers, or over the wrong ones, or its sum has lost a dimension of beta.",
            ended=("RuntimeError",),
            ended_in=("one beta", "a beta for each column", "a beta for each row", "x is data"),
            ended_saying="returned an invalid gradient at index 1",
        ),
    ),
)
