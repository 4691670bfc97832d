"""Judging `thrifty_linear`: a linear layer that does no needless work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from course_utils.checks.compare import close, listed, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_10_custom_functions import LESSON
from course_utils.checks.judges.lesson_10_custom_functions.functions import (
    left_alone,
    nothing_on_ctx,
    one_function,
    spread,
)

_WANTED: dict[str, tuple[tuple[int, ...], tuple[str, ...], bool]] = {
    "all three are wanted": ((6, 5), ("x", "weight", "bias"), True),
    "the weight is frozen": ((6, 5), ("x", "bias"), True),
    "x is data": ((6, 5), ("weight", "bias"), True),
    "no bias": ((6, 5), ("x", "weight"), False),
    "the bias is frozen": ((6, 5), ("x", "weight"), True),
    "only the bias is wanted": ((6, 5), ("bias",), True),
    "x has three dimensions": ((2, 7, 5), ("x", "weight", "bias"), True),
    "three dimensions, only the weight": ((2, 7, 5), ("weight",), False),
    "x has four dimensions, and the weight is square": ((2, 3, 2, 5), ("x", "weight", "bias"), True),
}


_WITHOUT_BIAS = tuple(name for name, (_, _, with_bias) in _WANTED.items() if not with_bias)
_ONE_FACTOR = tuple(name for name, (_, wanted, _) in _WANTED.items() if len({"x", "weight"} & set(wanted)) == 1)


def _cases(seed: int) -> list[Case]:
    cases = []
    for n, (name, (shape, wanted, with_bias)) in enumerate(_WANTED.items()):
        many = 5 if "square" in name else 1 if name == "only the bias is wanted" else 3
        rows = shape[:-1] if len(shape) == 2 else (1, *shape[1:-1])
        size = {"all three are wanted": 1e4, "no bias": 1e-7}.get(name, 1.0)  # long gradients, and short ones
        given: dict[str, Any] = {
            "x": Array.of(spread(seed + n, *shape)),
            "weight": Array.of(spread(seed + n + 1, many, 5)),
            "direction": Array.of(size * spread(seed + n + 2, *rows, many)),
            "wanted": list(wanted),
            "turned": name == "x has three dimensions",
        }
        if with_bias:
            given["bias"] = Array.of(spread(seed + n + 3, many))
        cases.append(Case(name, given))
    return cases


def _linear(case: Case) -> tuple[torch.Tensor, list[torch.Tensor]]:
    given = {name: case.given[name].tensor() for name in ("x", "weight", "bias") if name in case.given}
    wanted = [given[name].requires_grad_() for name in case.given["wanted"]]
    y = torch.nn.functional.linear(given["x"], given["weight"], given.get("bias"))
    direction = case.given["direction"].tensor().expand_as(y)
    return y.detach(), list(torch.autograd.grad(y, wanted, direction))


def _products(case: Case) -> int:
    return len({"x", "weight"} & set(case.given["wanted"]))


def _needed(case: Case) -> set[str]:
    """Return what the wanted gradients are computed from."""
    factors = {"x": "weight", "weight": "x"}
    return {factors[name] for name in case.given["wanted"] if name in factors}


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    y, gradients = _linear(case)
    yield left_alone(seen)
    yield right_value(seen["returned"], y, "What you returned")
    yield one_function(seen)
    if not seen["attached"]:
        return
    for name, mine, right in zip(case.given["wanted"], seen["gradients"], gradients, strict=True):
        yield right_value(mine, right, f"The gradient of {name}")
    needed = _products(case)
    message = (
        f"Your backward computed {seen['backward']} matrix products; the wanted gradients take {needed}, that of the "
    )
    message += "bias none: it is a sum."
    yield Finding("products", seen["backward"] == needed, message)
    message = f"Your forward computed {seen['forward']} matrix products; it takes one."
    yield Finding("forward", seen["forward"] == 1, message)
    message = (
        "Besides matrix products your function multiplied number by number, each of one tensor with many of another: "
        "the work of a further product, in far larger tensors."
    )
    yield Finding("spread", not seen["spread"], message)
    copied = seen["copied"]
    message = (
        f"Besides its result your forward made tensors of {copied} bytes and kept them. Save the inputs themselves."
    )
    yield Finding("copied", copied <= 8, message)
    extra = sorted(_extra(case, seen))
    yield Finding("kept", not extra, f"Kept for backward without need: {listed(extra)}.")
    message = f"After the pass still in memory: {listed(seen['held'])}. Something besides "
    message += "save_for_backward holds it, such as an attribute of ctx."
    yield Finding("held", not seen["held"] or bool(extra), message)
    yield nothing_on_ctx(seen)


def _right_linear(case: Case, seen: Observation) -> bool:
    if not seen["attached"]:
        return False
    return all(close(mine, right) for mine, right in zip(seen["gradients"], _linear(case)[1], strict=True))


def _extra(case: Case, seen: Observation) -> set[str]:
    result = {"the result"} if seen["result kept"] else set()
    return set(seen["kept"]) - _needed(case) | result


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    made, most = sum(it["backward"] for _, it in seen), 2 * len(seen)
    kept = sum(len(it["kept"]) for _, it in seen)
    yield f"In {len(seen)} cases your backward made {made} matrix products, and kept {kept} factors for them."
    yield f"A backward that always computes both gradients makes {most}, and keeps as many."


EXERCISE = Exercise(
    id="thrifty_linear",
    title="A linear layer that does no needless work",
    lesson=LESSON,
    difficulty=4,
    minutes=30,
    points=4,
    call="thrifty_linear(x, weight, bias)",
    counted=True,
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "ctx.needs_input_grad says for each input whether its gradient is wanted. It can be read in forward, too.",
        "The gradient of x takes the weight, that of the weight takes x. Save only what will be used; None may be "
        "saved in its place. For x with more than two dimensions, flatten all but the last.",
        "In forward: save x if the weight's gradient is needed, else None, and the weight likewise. Compute with "
        "F.linear. In backward start from three Nones. With g and x flattened to matrices: x gets g @ weight in the "
        "shape of x, weight gets g.T @ x, bias the sum of g over its rows, each only where needed.",
    ),
    misconceptions=(
        Misconception(
            "a gradient of None",
            "Where bias is None your backward returns a gradient for it. Return None in its place.",
            ended=("RuntimeError",),
            ended_in=_WITHOUT_BIAS,
            ended_saying="returned a gradient different than None at position 3",
        ),
        Misconception(
            "the wrong factor",
            "Where only one of x and weight wants a gradient, your code computes with a None. The gradient of x is "
            "made of the weight, and that of the weight of x: keep the one that will be used, and compute what is "
            "wanted.",
            ended=("TypeError", "AttributeError"),
            ended_in=_ONE_FACTOR,
            ended_saying="NoneType",
        ),
        Misconception(
            "everything is computed",
            "Your gradients are right. But your backward also computes gradients that nobody asked for, and throws "
            "them away.",
            lambda case, seen: _right_linear(case, seen) and seen["backward"] == 2 > _products(case),
        ),
        Misconception(
            "everything is kept",
            "Your backward computes only what is wanted. But your forward keeps x or weight where it will not be used, "
            "too.",
            lambda case, seen: (
                _right_linear(case, seen)
                and seen["backward"] <= _products(case)
                and set() < _extra(case, seen) <= {"x", "weight"}
            ),
        ),
        Misconception(
            "attributes of ctx",
            "Your Function keeps tensors as attributes of ctx. A pass frees what save_for_backward got, and leaves "
            "attributes alone.",
            lambda case, seen: (
                _right_linear(case, seen)
                and seen["backward"] <= _products(case)
                and not _extra(case, seen)
                and bool(seen["attribute"])
            ),
        ),
    ),
)
