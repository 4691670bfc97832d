"""Exercises of lesson 10 in which a Function is written."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from course_utils.checks.compare import close, listed, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.predict_10 import LESSON


def spread(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Return numbers between 0.3 and 1.8, some of them negated, none near 0 or 1 by design of the seed."""
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.rand(shape, generator=generator, dtype=torch.float64) * 1.5 + 0.3
    return torch.where(torch.rand(shape, generator=generator) < 0.4, -numbers, numbers).to(dtype)


def one_function(seen: Observation) -> Finding:
    """Find whether the graph between inputs and result is a single node, and a custom one."""
    if not seen["attached"]:
        message = "No gradient can go through what you returned: it has no graph, or another shape or dtype."
        return Finding("graph", False, message)
    found = seen["operations"]
    single = len(found) == 1 and found[0][1] is True
    names = listed(name.rpartition("::")[2] for name, _ in found[:4])
    count = "1 node" if len(found) == 1 else f"{len(found)} nodes" if found else "no node"
    message = f"Between the inputs and your result the graph has {count} ({names}); expected one, of a custom Function."
    return Finding("one node", single, message)


def left_alone(seen: Observation) -> Finding:
    """Find whether everything is as it was that is not the answer's own."""
    changed = seen.get("changed", [])
    return Finding("left alone", not changed, f"Your code changed what is not its own: {listed(changed)}.")


def nothing_on_ctx(seen: Observation) -> Finding:
    """Find whether tensors hang on a ctx, where no pass frees them."""
    message = "A tensor hangs on ctx as an attribute. A pass does not free it, and a write to it goes unnoticed."
    return Finding("attribute", not seen.get("attribute"), message)


def to_rounding(received: Value, expected: torch.Tensor, what: str) -> Finding:
    """Find whether `received` is right, and so near that no difference quotient gave it."""
    found = right_value(received, expected, what)
    if not found.ok or not isinstance(received, Array):
        return found
    error = float((received.tensor() - expected).abs().max() / expected.abs().max())
    message = f"{what} is off by {error:.0e}, relative to its size. A formula is right to about 1e-15."
    return Finding("exact", error < 1e-12, message)


# squash: the output is enough.


def _squash_cases(seed: int) -> list[Case]:
    return [
        Case(
            name,
            {
                "x": Array.of(spread(seed + n, *shape, dtype=dtype)),
                "direction": Array.of(spread(seed + n + 9, *(shape[::-1] if turned else shape), dtype=dtype)),
                "transposed": turned,
            },
        )
        for n, (name, shape, dtype, turned) in enumerate(
            [
                ("a matrix", (5, 7), torch.float64, False),
                ("a transposed matrix", (3, 8), torch.float64, True),
                ("one row of float32", (6,), torch.float32, False),
            ]
        )
    ]


def _squashed(case: Case) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return value, gradient and second derivative, as autograd has them for the plain formula."""
    x, direction = case.given["x"].tensor(), case.given["direction"].tensor()
    x = (x.t() if case.given["transposed"] else x).double().requires_grad_()
    y = x / (1 + x * x).sqrt()
    (first,) = torch.autograd.grad(y, x, direction.double(), create_graph=True)
    (second,) = torch.autograd.grad(first, x, direction.double())
    return tuple(tensor.detach().to(direction.dtype) for tensor in (y, first, second))


def _judge_squash(case: Case, seen: Observation) -> Iterator[Finding]:
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
        yield right_value(seen["second"], second, "The second derivative")


def _slope(case: Case) -> torch.Tensor:
    """Return the derivative, without the incoming gradient."""
    direction: torch.Tensor = case.given["direction"].tensor()
    return _squashed(case)[1] / direction


squash = Exercise(
    id="squash",
    title="Save the result, and nothing else",
    lesson=LESSON,
    difficulty=2,
    minutes=15,
    points=2,
    call="squash(x)",
    cases=_squash_cases,
    judge=_judge_squash,
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
            "You keep a tensor as an attribute of ctx. That works, until somebody writes to the tensor, and it stays "
            "in memory after the pass.",
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


# clamp_inward: a gradient that no composition has. Which numbers let it pass is decided first, x is made from that.

_RANGES = {"a matrix": ((4, 7), -1.25, 2.5), "three dimensions": ((2, 5, 3), 0.75, 1.5)}
_KINDS = {
    # where x is: (its bound, how far above the bound, sign of the incoming gradient or 0 for both, whether it passes)
    "inside": ("low", 0.4, 0, True),
    "below, pushed up": ("low", -0.7, -1, True),
    "below, pushed down": ("low", -0.9, 1, False),
    "above, pushed down": ("high", 0.6, 1, True),
    "above, pushed up": ("high", 1.3, -1, False),
    "on the lower bound": ("low", 0.0, 0, True),
    "on the upper bound": ("high", 0.0, 0, True),
}


def _clamped(name: str, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return x, the incoming gradient, and the gradient that passes."""
    shape, low, high = _RANGES[name]
    generator = torch.Generator().manual_seed(seed)
    count = int(torch.tensor(shape).prod())
    order = torch.randperm(count, generator=generator)
    x, direction = torch.empty(count, dtype=torch.float64), spread(seed + 1, count)
    right = torch.zeros(count, dtype=torch.float64)
    for n, place in enumerate(order.tolist()):
        bound, above, sign, passes = list(_KINDS.values())[n % len(_KINDS)]
        x[place] = (low if bound == "low" else high) + above * (1 + 0.1 * n / count)
        if sign:
            direction[place] = sign * direction[place].abs()
        right[place] = direction[place] if passes else 0.0
    return x.reshape(shape), direction.reshape(shape), right.reshape(shape)


def _clamp_cases(seed: int) -> list[Case]:
    cases = []
    for name, (_, low, high) in _RANGES.items():
        x, direction, _ = _clamped(name, seed)
        given = {"x": Array.of(x), "direction": Array.of(direction), "low": low, "high": high, "seed": seed}
        cases.append(Case(name, given))
    return cases


def _right_clamp(case: Case) -> torch.Tensor:
    return _clamped(case.name, case.given["seed"])[2]


def _judge_clamp(case: Case, seen: Observation) -> Iterator[Finding]:
    clamped = case.given["x"].tensor().clamp(case.given["low"], case.given["high"])
    yield left_alone(seen)
    yield to_rounding(seen["returned"], clamped, "What you returned")
    yield one_function(seen)
    if seen["attached"]:
        yield to_rounding(seen["gradient"], _right_clamp(case), "The gradient of x")
        yield nothing_on_ctx(seen)


def _gradient_is(case: Case, seen: Observation, gradient: torch.Tensor) -> bool:
    return bool(seen["attached"] and not seen["changed"] and close(seen["gradient"], gradient))


def _plain_clamp(case: Case) -> torch.Tensor:
    return torch.where(_outside(case), 0.0, case.given["direction"].tensor())


def _outward(case: Case) -> torch.Tensor:
    direction = case.given["direction"].tensor()
    return torch.where(_outside(case), direction - _right_clamp(case), direction)


def _outside(case: Case) -> torch.Tensor:
    x: torch.Tensor = case.given["x"].tensor()
    low, high = case.given["low"], case.given["high"]
    return torch.ne(x, x.clamp(low, high))


clamp_inward = Exercise(
    id="clamp_inward",
    title="A clamp that lets numbers come back",
    lesson=LESSON,
    difficulty=2,
    minutes=15,
    points=2,
    call="clamp_inward(x, low, high)",
    cases=_clamp_cases,
    judge=_judge_clamp,
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
            "Your backward lets every gradient pass, those too that push a number farther out.",
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
