"""Exercises of lesson 10 on doing and keeping less: a linear layer, and dropout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from course_utils.checks.compare import close, listed, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.predict_10 import LESSON
from course_utils.checks.lessons.writing_10 import left_alone, nothing_on_ctx, one_function, spread, to_rounding

# thrifty_linear: nothing computed and nothing kept that nobody asked for.

_WANTED: dict[str, tuple[tuple[int, ...], tuple[str, ...], bool]] = {
    "all three are wanted": ((6, 5), ("x", "weight", "bias"), True),
    "the weight is frozen": ((6, 5), ("x", "bias"), True),
    "x is data": ((6, 5), ("weight", "bias"), True),
    "no bias": ((6, 5), ("x", "weight"), False),
    "only the bias is wanted": ((6, 5), ("bias",), True),
    "x has three dimensions": ((2, 7, 5), ("x", "weight", "bias"), True),
    "three dimensions, only the weight": ((2, 7, 5), ("weight",), False),
}


def _linear_cases(seed: int) -> list[Case]:
    cases = []
    for n, (name, (shape, wanted, with_bias)) in enumerate(_WANTED.items()):
        given: dict[str, Any] = {
            "x": Array.of(spread(seed + n, *shape)),
            "weight": Array.of(spread(seed + n + 1, 3, 5)),
            "direction": Array.of(spread(seed + n + 2, *(shape[:-1] if len(shape) == 2 else (1, shape[1])), 3)),
            "wanted": list(wanted),
        }
        if with_bias:
            given["bias"] = Array.of(spread(seed + n + 3, 3))
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


def _judge_linear(case: Case, seen: Observation) -> Iterator[Finding]:
    y, gradients = _linear(case)
    yield left_alone(seen)
    yield right_value(seen["returned"], y, "What you returned")
    yield one_function(seen)
    if not seen["attached"]:
        return
    for name, mine, right in zip(case.given["wanted"], seen["gradients"], gradients, strict=True):
        yield right_value(mine, right, f"The gradient of {name}")
    needed = _products(case)
    message = f"Your backward computed {seen['backward']} matrix products; the wanted gradients take {needed}."
    yield Finding("products", seen["backward"] == needed, message)
    message = f"Your forward computed {seen['forward']} matrix products; it takes one."
    yield Finding("forward", seen["forward"] == 1, message)
    copied = seen["copied"]
    message = (
        f"Besides its result your forward made tensors of {copied} bytes and kept them. Save the inputs themselves."
    )
    yield Finding("copied", copied <= 8, message)
    extra = sorted(set(seen["kept"]) - _needed(case))
    yield Finding("kept", not extra, f"Kept for backward without need: {listed(extra)}.")
    message = f"After the pass still in memory: {listed(seen['held'])}. What save_for_backward gets is freed by a pass."
    yield Finding("held", not seen["held"] or bool(extra), message)
    yield nothing_on_ctx(seen)


def _right_linear(case: Case, seen: Observation) -> bool:
    if not seen["attached"]:
        return False
    return all(close(mine, right) for mine, right in zip(seen["gradients"], _linear(case)[1], strict=True))


def _extra(case: Case, seen: Observation) -> bool:
    return bool(set(seen["kept"]) - _needed(case))


thrifty_linear = Exercise(
    id="thrifty_linear",
    title="A linear layer that does no needless work",
    lesson=LESSON,
    difficulty=4,
    minutes=30,
    points=4,
    call="thrifty_linear(x, weight, bias)",
    cases=_linear_cases,
    judge=_judge_linear,
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
            "everything is computed",
            "Your gradients are right. But your backward also computes gradients that nobody asked for, and throws "
            "them away.",
            lambda case, seen: (
                _right_linear(case, seen) and seen["backward"] > _products(case) and not _extra(case, seen)
            ),
        ),
        Misconception(
            "everything is kept",
            "Your backward computes only what is wanted. But your forward keeps both factors even where only one of "
            "them, or none, will be used.",
            lambda case, seen: _right_linear(case, seen) and seen["backward"] <= _products(case) and _extra(case, seen),
        ),
        Misconception(
            "attributes of ctx",
            "Your Function keeps its factors as attributes of ctx. A pass frees what save_for_backward got, and "
            "leaves attributes alone.",
            lambda case, seen: (
                _right_linear(case, seen)
                and seen["backward"] <= _products(case)
                and not _extra(case, seen)
                and bool(seen["held"] or seen["attribute"])
            ),
        ),
    ),
)


# seeded_dropout: a mask that is made twice and kept never.


def _dropout_cases(seed: int) -> list[Case]:
    shapes = {"a matrix": ((50, 81), 0.3, torch.float64), "float32": ((7, 21, 23), 0.5, torch.float32)}
    return [
        Case(
            name,
            {
                "x": Array.of(spread(seed + n, *shape, dtype=dtype)),
                "direction": Array.of(spread(seed + n + 5, *shape, dtype=dtype)),
                "p": p,
                "seed": 1000 + seed + n,
            },
        )
        for n, (name, (shape, p, dtype)) in enumerate(shapes.items())
    ]


def _mask(case: Case, returned: Any) -> torch.Tensor | None:
    """Return where numbers were kept; None where what was returned has not the shape and dtype of x."""
    x = case.given["x"]
    if not isinstance(returned, Array) or (returned.shape, returned.dtype) != (x.shape, x.dtype):
        return None
    return returned.tensor() != 0


def _independent(mask: torch.Tensor) -> bool:
    """Return whether no two slices of the mask are alike, along any dimension."""
    return all(mask.byte().unique(dim=dim).shape == mask.shape for dim in range(mask.dim()))


def _judge_dropout(case: Case, seen: Observation) -> Iterator[Finding]:
    x, direction, p = case.given["x"].tensor(), case.given["direction"].tensor(), case.given["p"]
    mask = _mask(case, seen["returned"])
    yield left_alone(seen)
    if mask is None:
        yield right_value(seen["returned"], x, "What you returned")
        yield Finding("kind", False, "What you returned is no tensor of the shape and dtype of x.")
        return
    exact = to_rounding if x.dtype == torch.float64 else right_value
    yield exact(seen["returned"], x * mask / (1 - p), "What you returned, where it is not zero,")
    share = 1 - float(mask.double().mean())
    message = f"{share:.1%} of the numbers were dropped; with p={p} about {p:.0%} are expected."
    yield Finding("share", abs(share - p) < 0.06, message)
    yield Finding("same", seen["again"] == seen["returned"], "Called twice with the same seed, it gave two results.")
    message = "Rows or columns of x share one mask. Each number is dropped or kept by itself."
    yield Finding("each by itself", _independent(mask), message)
    message = "Called with another seed, it dropped the same numbers."
    yield Finding("other", seen["returned"] not in seen["others"], message)
    message = "Your function used PyTorch's global random generator: its state afterwards was another."
    yield Finding("generator", seen["generator"], message)
    yield one_function(seen)
    if seen["attached"]:
        yield from _dropout_gradients(seen, direction * mask / (1 - p))
        message = f"With the result gone, about {seen['kept']} bytes are kept for backward; {_MOST} are allowed."
        yield Finding("kept", seen["kept"] <= _MOST, message)


def _dropout_gradients(seen: Observation, right: torch.Tensor) -> Iterator[Finding]:
    for mine, which in zip(seen["gradients"], ("first", "second"), strict=True):
        found = right_value(mine, right, f"The gradient of x in the {which} of two passes")
        yield Finding(found.prop, found.ok, found.message)


# Room for a few numbers and a shape. One bit for each number of x would be more.
_MOST = 400


def _gradients_are(case: Case, seen: Observation, factor: float) -> bool:
    mask = _mask(case, seen["returned"])
    if mask is None or not seen["attached"]:
        return False
    right = case.given["direction"].tensor() * mask * factor
    return all(close(mine, right) for mine in seen["gradients"])


def _scale(case: Case) -> float:
    return float(1 / (1 - case.given["p"]))


def _another_mask(case: Case, seen: Observation) -> bool:
    """Return whether the gradient is zero for some numbers that were kept, and not for some that were dropped."""
    mask = _mask(case, seen["returned"])
    if mask is None or not seen["attached"]:
        return False
    used = _mask(case, seen["gradients"][0])
    return used is not None and bool((used & ~mask).any()) and bool((mask & ~used).any())


seeded_dropout = Exercise(
    id="seeded_dropout",
    title="Dropout that keeps no mask",
    lesson=LESSON,
    difficulty=4,
    minutes=25,
    points=4,
    call="seeded_dropout(x, p, seed)",
    cases=_dropout_cases,
    judge=_judge_dropout,
    hints=(
        "What does backward need? Only the mask. And what does it take to make the same mask again?",
        "A torch.Generator of your own, seeded with `seed`, gives the same numbers each time and leaves the global "
        "one alone. What must ctx remember? No tensor.",
        "Write a helper that makes a generator, seeds it, and returns torch.rand(shape, generator=...) >= p. forward "
        "puts p and seed on ctx and returns x * mask / (1 - p). backward makes the mask again from the gradient's "
        "shape, and returns the gradient times mask / (1 - p), then None twice.",
    ),
    misconceptions=(
        Misconception(
            "the mask is kept",
            "Your gradient is right, and your Function keeps much for it: the mask, or a tensor that shows it. The "
            "seed is enough to make the mask again.",
            lambda case, seen: seen["attached"] and seen["kept"] > _MOST and _gradients_are(case, seen, _scale(case)),
        ),
        Misconception(
            "another mask in backward",
            "Your backward used another mask than your forward: it let other numbers pass.",
            _another_mask,
        ),
        Misconception(
            "the global generator",
            "You seed PyTorch's global generator. All random numbers that the rest of the program draws afterwards "
            "now depend on your seed.",
            lambda case, seen: not seen["generator"] and _gradients_are(case, seen, _scale(case)),
        ),
        Misconception(
            "not scaled in backward",
            "Your forward divides by 1 - p, your backward does not.",
            lambda case, seen: seen["attached"] and _gradients_are(case, seen, 1.0),
        ),
    ),
)
