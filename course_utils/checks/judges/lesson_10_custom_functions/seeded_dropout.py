"""Judging `seeded_dropout`: dropout that keeps no mask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import torch

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_10_custom_functions import LESSON
from course_utils.checks.judges.lesson_10_custom_functions.functions import (
    left_alone,
    one_function,
    spread,
    to_rounding,
)

_RARE = 0.004  # below half a percent; of the numbers of either case it drops about 15
# One number in 256 that are drawn in bfloat16 is zero: below any p that is not.
_MANY, _VERY_RARE = 20_000, 0.001
# By how much other seeds are larger: who takes a seed modulo something, or rounds it, has some of these alike.
_FURTHER = (0, *(10**n for n in range(7)), *(2**n for n in range(4, 29, 2)))
_ENDS = (0, 1, 2**31 - 1, 2**31)  # seeds at the ends of what is allowed


def _cases(seed: int) -> list[Case]:
    shapes = {"a matrix": ((50, 81), 0.375, torch.float64), "float32, transposed": ((7, 21, 23), 0.5, torch.float32)}
    return [
        Case(
            name,
            {
                "x": Array.of(_some_small(spread(seed + n, *shape, dtype=dtype))),
                "direction": Array.of(spread(seed + n + 5, *shape, dtype=dtype)),
                "p": p,
                "transposed": name.endswith("transposed"),
                "seed": (1000 + seed) * n,
                "ends": list(_ENDS),
                "further": list(_FURTHER),
                "rare": _RARE,
                "many": _MANY,
                "very rare": _VERY_RARE,
            },
        )
        for n, (name, (shape, p, dtype)) in enumerate(shapes.items())
    ]


def _some_small(x: torch.Tensor) -> torch.Tensor:
    """Return the numbers with every seventh made small."""
    return torch.where(torch.arange(x.numel()).reshape(x.shape) % 7 == 0, 1e-4 * x, x)


def _mask(case: Case, returned: Any) -> torch.Tensor | None:
    """Return where numbers were kept; None where what was returned has not the shape and dtype of x."""
    x = case.given["x"]
    if not isinstance(returned, Array) or (returned.shape, returned.dtype) != (x.shape, x.dtype):
        return None
    return returned.tensor() != 0


def _independent(mask: torch.Tensor) -> bool:
    """Return whether no two slices of the mask are alike, along any dimension."""
    return all(mask.byte().unique(dim=dim).shape == mask.shape for dim in range(mask.dim()))


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
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
    message = f"{share:.1%} of the numbers were dropped; with p={p} about {p:.1%} are expected."
    yield Finding("share", abs(share - p) < 0.06, message)
    message = f"With p={_RARE} none of {x.numel()} numbers was dropped; about {_RARE * x.numel():.0f} are expected."
    yield Finding("share", bool(seen["rare"]) or abs(share - p) >= 0.06, message)
    coarse = seen.get("coarse")
    message = (
        f"With p={_VERY_RARE} {coarse} of {_MANY:,} numbers in bfloat16 were dropped; about {_VERY_RARE * _MANY:.0f} "
        "are expected. Such numbers are coarse: a draw, or 1 - p, that is rounded to them is no longer what it was."
    )
    yield Finding("share", coarse is None or 0 < coarse < 50 or abs(share - p) >= 0.06, message)
    message = "Called twice with the same seed, and numbers that lie in memory in two orders, it gave two results."
    yield Finding("same", seen["again"] == seen["returned"], message)
    message = "Rows or columns of x share one mask. Each number is dropped or kept by itself."
    yield Finding("each by itself", _independent(mask) or len(mask.unique()) == 1, message)
    counts = {int(it.sum()) for it in (_mask(case, other) for other in seen["others"]) if it is not None}
    message = "With each seed it dropped exactly as many numbers. Each number is dropped or kept by itself."
    same = seen["returned"] in seen["others"]
    yield Finding("by chance", counts != {int(mask.sum())} or same, message)
    yield Finding("other", not same, "Called with another seed, it dropped the same numbers.")
    tried = zip(_ENDS, seen["ends"], strict=True)
    alike = [(one, other) for (one, mine), (other, its) in combinations(tried, 2) if mine == its]
    message = f"With the seeds {alike[0][0]} and {alike[0][1]} it dropped the same numbers." if alike else ""
    yield Finding("other", not alike, message)
    seeds = zip(_FURTHER, seen["far"], strict=True)
    alike = [(one, other) for (one, mine), (other, its) in combinations(seeds, 2) if mine == its]
    first = case.given["seed"]
    message = (
        f"With the seeds {first + alike[0][0]} and {first + alike[0][1]} it dropped the same numbers of two rows of x."
        if alike
        else ""
    )
    yield Finding("other", not alike, message)
    found = right_value(seen["none"]["returned"], x, "With p = 0, where nothing is dropped, what you returned")
    yield Finding("share", found.ok, found.message)
    if seen["none"]["attached"]:
        found = one_function(seen["none"])
        yield Finding(found.prop, found.ok, found.message and f"With p = 0: {found.message}")
    message = "Your function used PyTorch's global random generator: its state afterwards was another."
    yield Finding("generator", seen["generator"], message)
    yield one_function(seen)
    if seen["attached"]:
        yield from _dropout_gradients(case, seen, direction, direction * mask / (1 - p))
        message = f"With the result gone, about {seen['kept']} bytes are kept for backward; {_MOST} are allowed."
        yield Finding("kept", seen["kept"] <= _MOST, message)


def _dropout_gradients(
    case: Case, seen: Observation, direction: torch.Tensor, right: torch.Tensor
) -> Iterator[Finding]:
    late = _mask(case, seen.get("late returned"))
    if late is not None:
        yield right_value(
            seen["late"], direction * late / (1 - case.given["p"]), f"With the seed {_ENDS[-2]} the gradient of x"
        )
    for mine, which in zip(seen["gradients"], ("first", "second"), strict=True):
        turned = which == "second" and not _drawn_on(case, seen)
        order = " (where the same numbers come in, in another order in memory)" if turned else ""
        found = right_value(mine, right, f"The gradient of x in the {which} of two passes{order}")
        yield Finding(found.prop, found.ok, found.message)


# Room for a few numbers and a shape. One bit for each number of x would be more.
_MOST = 400


def _gradients_are(case: Case, seen: Observation, factor: float) -> bool:
    mask = _mask(case, seen["returned"])
    if mask is None or not mask.any() or not seen["attached"]:
        return False
    right = case.given["direction"].tensor() * mask * factor
    return all(close(mine, right) for mine in seen["gradients"])


def _returns(case: Case, seen: Observation, factor: float) -> bool:
    """Return whether the result is x, where it was kept, times this factor."""
    mask = _mask(case, seen["returned"])
    if mask is None or not mask.any():
        return False
    return close(seen["returned"], case.given["x"].tensor() * mask * factor)


def _scale(case: Case) -> float:
    return float(1 / (1 - case.given["p"]))


def _another_mask(case: Case, seen: Observation) -> bool:
    """Return whether the gradient is zero for some numbers that were kept, and not for some that were dropped."""
    mask = _mask(case, seen["returned"])
    if mask is None or not seen["attached"]:
        return False
    used = _mask(case, seen["gradients"][0])
    return used is not None and bool((used & ~mask).any()) and bool((mask & ~used).any())


def _in_memory_order(case: Case, seen: Observation) -> bool:
    """Return whether numbers in another order in memory were dropped in the same order there, and so are others."""
    mask, again = _mask(case, seen["returned"]), _mask(case, seen["again"])
    if mask is None or again is None or not seen["generator"]:
        return False
    turned, row_by_row = (mask, again) if case.given["transposed"] else (again, mask)
    return torch.equal(turned.transpose(0, -1).flatten(), row_by_row.flatten()) and not torch.equal(mask, again)


def _drawn_on(case: Case, seen: Observation) -> bool:
    """Tell a second pass that drops other numbers than the first, and not the first's in another order."""
    mask = _mask(case, seen["returned"])
    first, second = (_mask(case, it) for it in seen["gradients"])
    if mask is None or first is None or second is None or not torch.equal(first, mask) or torch.equal(second, mask):
        return False
    return not torch.equal(second.transpose(0, -1).flatten(), mask.flatten())


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, _ = seen[0]
    count = case.given["x"].tensor().numel()
    yield f"For {count} numbers PyTorch's dropout keeps a mask of {count} bytes or more, your node at most {_MOST}."
    yield "What that costs: the mask is made twice, once in the forward and once in each backward."


EXERCISE = Exercise(
    id="seeded_dropout",
    title="Dropout that keeps no mask",
    lesson=LESSON,
    difficulty=4,
    minutes=25,
    points=4,
    call="seeded_dropout(x, p, seed)",
    counted=True,
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
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
            "Your gradient is right, and your Function keeps much for it: the mask, or something as large. The seed is "
            "enough to make the mask again.",
            lambda case, seen: (
                seen["attached"]
                and seen["kept"] > _MOST
                and one_function(seen).ok
                and _gradients_are(case, seen, _scale(case))
            ),
        ),
        Misconception(
            "another mask in backward",
            "Your backward used another mask than your forward: it let other numbers pass.",
            _another_mask,
        ),
        Misconception(
            "a mask in the memory's order",
            "With one seed your mask depends on how x lies in memory: the same draws went to other places where x was "
            "transposed.",
            _in_memory_order,
            hint="What is made like a tensor, as by empty_like, is filled in the order of its memory; "
            "torch.rand(shape, generator=...) is not.",
        ),
        Misconception(
            "drawn on in the second pass",
            "Your first pass through a graph dropped the numbers that forward had dropped, and a second pass through "
            "it dropped others. Whatever draws in backward has to begin anew from the seed in each pass.",
            lambda case, seen: seen["attached"] and _drawn_on(case, seen),
        ),
        Misconception(
            "the global generator",
            "You seed PyTorch's global generator, or draw from it, and leave it in another state. All random numbers "
            "that the rest of the program draws afterwards depend on that.",
            lambda case, seen: not seen["generator"] and _gradients_are(case, seen, _scale(case)),
        ),
        Misconception(
            "not scaled in backward",
            "Your forward divides by 1 - p, your backward does not.",
            lambda case, seen: _returns(case, seen, _scale(case)) and _gradients_are(case, seen, 1.0),
        ),
        Misconception(
            "not scaled in forward",
            "Your backward divides by 1 - p, your forward does not.",
            lambda case, seen: _returns(case, seen, 1.0) and _gradients_are(case, seen, _scale(case)),
        ),
        Misconception(
            "not scaled at all",
            "Neither your forward nor your backward divides by 1 - p.",
            lambda case, seen: _returns(case, seen, 1.0) and _gradients_are(case, seen, 1.0),
        ),
    ),
)
