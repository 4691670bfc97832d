"""Judging `clamp_inward`: a clamp that lets numbers come back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch

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

_RANGES = {
    "a matrix": ((4, 7), -1.3, 2.6),
    "three dimensions, transposed": ((2, 5, 3), 0.9, 1.7),
    "far outside, and a hair": ((24,), 0.0, 1.0),
}

_KINDS = {
    # where x is: (its bound, how far above the bound, sign and size of the incoming gradient or 0 for both
    # signs, whether it passes)
    "inside": ("low", 0.4, 0, True),
    "below, pushed up": ("low", -0.7, -1, True),
    "below, pushed down": ("low", -0.9, 1, False),
    "above, pushed down": ("high", 0.6, 1, True),
    "above, pushed up": ("high", 1.3, -1, False),
    "below, pushed far beyond the range": ("low", -0.5, -40, True),
    "above, pushed far beyond the range": ("high", 0.8, 40, True),
    "on the lower bound": ("low", 0.0, 0, True),
    "on the upper bound": ("high", 0.0, 0, True),
}
_FAR = {  # a step is lost there in rounding, and a product with the gradient is no number or 0
    "far below, pushed up": ("low", -1e20, -1, True),
    "far below, pushed down": ("low", -1e20, 1, False),
    "above all numbers, pushed down": ("high", math.inf, 1, True),
    "above all numbers, pushed up": ("high", math.inf, -1, False),
    "below all numbers, pushed up": ("low", -math.inf, -1, True),
    "below all numbers, pushed down": ("low", -math.inf, 1, False),
    "a hair below, pushed up by a hair": ("low", -1e-200, -1e-200, True),
    "a hair below, pushed down by a hair": ("low", -1e-200, 1e-200, False),
}


def _clamped(name: str, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return x, the incoming gradient, and the gradient that passes."""
    shape, low, high = _RANGES[name]
    kinds = list((_FAR if "far" in name else _KINDS).values())
    generator = torch.Generator().manual_seed(seed)
    count = int(torch.tensor(shape).prod())
    order = torch.randperm(count, generator=generator)
    x, direction = torch.empty(count, dtype=torch.float64), spread(seed + 1, count)
    right = torch.zeros(count, dtype=torch.float64)
    for n, place in enumerate(order.tolist()):
        bound, above, sign, passes = kinds[n % len(kinds)]
        x[place] = (low if bound == "low" else high) + above * (1 + 0.1 * n / count)
        if sign:
            direction[place] = sign * direction[place].abs()
        if n in range(9, 13) and "far" not in name:  # inside, and on either side of the range
            direction[place] = 0
        right[place] = direction[place] if passes else 0.0
    return x.reshape(shape), direction.reshape(shape), right.reshape(shape)


def _cases(seed: int) -> list[Case]:
    cases = []
    for name, (_, low, high) in _RANGES.items():
        x, direction, _ = _clamped(name, seed)
        given = {"x": Array.of(x), "direction": Array.of(direction), "low": low, "high": high, "seed": seed}
        given["transposed"] = name.endswith("transposed")
        cases.append(Case(name, given))
    return cases


def _right_clamp(case: Case) -> torch.Tensor:
    return _clamped(case.name, case.given["seed"])[2]


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    clamped = case.given["x"].tensor().clamp(case.given["low"], case.given["high"])
    yield left_alone(seen)
    yield to_rounding(seen["returned"], clamped, "What you returned")
    yield one_function(seen)
    if seen["attached"]:
        yield (found := to_rounding(seen["gradient"], _right_clamp(case), "The gradient of x"))
        if found.ok:
            yield _unchanged(case, seen)
        yield nothing_on_ctx(seen)


def _unchanged(case: Case, seen: Observation) -> Finding:
    """Find whether each number of the gradient is the one that came in, or zero, however small."""
    received, right = seen["gradient"].tensor().flatten(), _right_clamp(case).flatten()
    others = (received != right).nonzero().flatten().tolist()
    if not others:
        return Finding("unchanged", True, "")
    x, came_in = (case.given[name].tensor().flatten()[others[0]].item() for name in ("x", "direction"))
    text = f"Where x is {x:.3g} and the gradient that comes in {came_in:.3g}, yours is {received[others[0]]:.3g}; "
    text += "expected " + ("the same." if right[others[0]] else "0.")
    return Finding("unchanged", False, text)


def _gradient_is(case: Case, seen: Observation, gradient: torch.Tensor) -> bool:
    """Return whether the gradient is this one, to the smallest numbers."""
    return bool(seen["attached"] and not seen["changed"] and torch.equal(seen["gradient"].tensor(), gradient))


def _plain_clamp(case: Case) -> torch.Tensor:
    return torch.where(_outside(case), 0.0, case.given["direction"].tensor())


def _outward(case: Case) -> torch.Tensor:
    direction = case.given["direction"].tensor()
    return torch.where(_outside(case), direction - _right_clamp(case), direction)


def _outside(case: Case) -> torch.Tensor:
    x: torch.Tensor = case.given["x"].tensor()
    low, high = case.given["low"], case.given["high"]
    return torch.ne(x, x.clamp(low, high))


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, _ = seen[0]
    plainly, right = _plain_clamp(case), _right_clamp(case)
    outside, passed = int(_outside(case).sum()), int(((right != 0) & (plainly == 0)).sum())
    yield f"In the first case {outside} numbers lie outside the range; your gradient lets {passed} of them come back."
    yield "That of clamp lets none. Yours is the derivative of no function: backward may compute what one wants."


EXERCISE = Exercise(
    id="clamp_inward",
    title="A clamp that lets numbers come back",
    lesson=LESSON,
    difficulty=2,
    minutes=15,
    points=2,
    call="clamp_inward(x, low, high)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "Gradient descent subtracts the gradient. Which sign of it raises a number that lies below the range?",
        "Three masks: inside with its bounds; below with a negative gradient; above with a positive gradient. "
        "`backward` must return one thing for each input of `forward`.",
        "forward saves x, keeps low and high as attributes of ctx (they are numbers), and returns x.clamp(low, high). "
        "backward makes the three masks, joins them by |, and returns torch.where(mask, gradient, 0) and None twice.",
    ),
    misconceptions=(
        Misconception(
            "everything passes",
            "Every gradient passes, those too that push a number farther out.",
            lambda case, seen: _gradient_is(case, seen, case.given["direction"].tensor()),
        ),
        Misconception(
            "the clamp's own gradient",
            "Your gradient is zero wherever x lies outside. That is the gradient of clamp: numbers outside stay there.",
            lambda case, seen: _gradient_is(case, seen, _plain_clamp(case)),
        ),
        Misconception(
            "outward",
            "Outside the range your backward lets pass what pushes numbers farther out, and stops what brings them "
            "back.",
            lambda case, seen: _gradient_is(case, seen, _outward(case)),
        ),
    ),
)
