"""Exercises of lesson 10 in which a Function is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from course_utils.checks.compare import close, listed, right_value
from course_utils.checks.data import Array, Case, Observation
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
    yield right_value(seen["returned"], y, "What you returned")
    yield Finding("input", seen["x"], "Your function changed x.")
    yield one_function(seen)
    if seen["attached"]:
        yield right_value(seen["gradient"], first, "The gradient of x")
        kept = seen["kept"]
        message = f"Besides the result itself, {kept} bytes are kept for backward; expected none."
        yield Finding("kept", kept <= 8, message)
        message = "A tensor hangs on ctx as an attribute. A pass does not free it, and a write to it goes unnoticed."
        yield Finding("attribute", not seen["attribute"], message)
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

_LOW, _HIGH = -1.25, 2.5
_KINDS = {
    # where x is: (distance from the lower bound, sign of the incoming gradient or 0 for both, whether it passes)
    "inside": (1.4, 0, True),
    "below, pushed up": (-0.7, -1, True),
    "below, pushed down": (-0.9, 1, False),
    "above, pushed down": (4.4, 1, True),
    "above, pushed up": (5.3, -1, False),
    "on the lower bound": (0.0, 0, True),
    "on the upper bound": (_HIGH - _LOW, 0, True),
}


def _clamped(seed: int, shape: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return x, the incoming gradient, and the gradient that passes."""
    generator = torch.Generator().manual_seed(seed)
    count = int(torch.tensor(shape).prod())
    order = torch.randperm(count, generator=generator)
    x, direction = torch.empty(count, dtype=torch.float64), spread(seed + 1, count)
    right = torch.zeros(count, dtype=torch.float64)
    for n, place in enumerate(order.tolist()):
        distance, sign, passes = list(_KINDS.values())[n % len(_KINDS)]
        on_bound = distance in (0.0, _HIGH - _LOW)
        x[place] = _LOW + distance + (0.0 if on_bound else 0.01 * n / count)
        if sign:
            direction[place] = sign * direction[place].abs()
        right[place] = direction[place] if passes else 0.0
    return x.reshape(shape), direction.reshape(shape), right.reshape(shape)


def _clamp_cases(seed: int) -> list[Case]:
    cases = []
    for name, shape in {"a matrix": (4, 7), "three dimensions": (2, 5, 3)}.items():
        x, direction, _ = _clamped(seed, shape)
        given = {"x": Array.of(x), "direction": Array.of(direction), "low": _LOW, "high": _HIGH, "seed": seed}
        cases.append(Case(name, {**given, "shape": list(shape)}))
    return cases


def _right_clamp(case: Case) -> torch.Tensor:
    return _clamped(case.given["seed"], tuple(case.given["shape"]))[2]


def _judge_clamp(case: Case, seen: Observation) -> Iterator[Finding]:
    yield right_value(seen["returned"], case.given["x"].tensor().clamp(_LOW, _HIGH), "What you returned")
    yield Finding("input", seen["x"], "Your function changed x.")
    yield one_function(seen)
    if seen["attached"]:
        yield right_value(seen["gradient"], _right_clamp(case), "The gradient of x")


def _gradient_is(case: Case, seen: Observation, gradient: torch.Tensor) -> bool:
    return bool(seen["attached"] and close(seen["gradient"], gradient))


def _plain_clamp(case: Case) -> torch.Tensor:
    x = case.given["x"].tensor()
    return torch.where((x >= _LOW) & (x <= _HIGH), case.given["direction"].tensor(), 0.0)


def _outward(case: Case) -> torch.Tensor:
    x, direction = case.given["x"].tensor(), case.given["direction"].tensor()
    outside = (x < _LOW) | (x > _HIGH)
    return torch.where(outside, direction - _right_clamp(case), direction)


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
            "direction": Array.of(spread(seed + n + 2, *shape[:-1], 3)),
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
    return y.detach(), list(torch.autograd.grad(y, wanted, case.given["direction"].tensor()))


def _products(case: Case) -> int:
    return len({"x", "weight"} & set(case.given["wanted"]))


def _needed(case: Case) -> set[str]:
    """Return what the wanted gradients are computed from."""
    factors = {"x": "weight", "weight": "x"}
    return {factors[name] for name in case.given["wanted"] if name in factors}


def _judge_linear(case: Case, seen: Observation) -> Iterator[Finding]:
    y, gradients = _linear(case)
    yield right_value(seen["returned"], y, "What you returned")
    yield one_function(seen)
    if not seen["attached"]:
        return
    for name, mine, right in zip(case.given["wanted"], seen["gradients"], gradients, strict=True):
        yield right_value(mine, right, f"The gradient of {name}")
    needed = _products(case)
    message = f"Your backward computed {seen['backward']} matrix products; the wanted gradients take {needed}."
    yield Finding("products", seen["backward"] <= needed, message)
    message = f"Your forward computed {seen['forward']} matrix products; it takes one."
    yield Finding("forward", seen["forward"] <= 1, message)
    extra = sorted(set(seen["kept"]) - _needed(case))
    yield Finding("kept", not extra, f"Kept for backward without need: {listed(extra)}.")
    message = f"After the pass still in memory: {listed(seen['held'])}. What save_for_backward gets is freed by a pass."
    yield Finding("held", not seen["held"] or bool(extra), message)


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
                and bool(seen["held"])
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


def _judge_dropout(case: Case, seen: Observation) -> Iterator[Finding]:
    x, direction, p = case.given["x"].tensor(), case.given["direction"].tensor(), case.given["p"]
    mask = _mask(case, seen["returned"])
    if mask is None:
        yield right_value(seen["returned"], x, "What you returned")
        yield Finding("kind", False, "What you returned is no tensor of the shape and dtype of x.")
        return
    yield right_value(seen["returned"], x * mask / (1 - p), "What you returned, where it is not zero,")
    share = 1 - float(mask.double().mean())
    message = f"{share:.1%} of the numbers were dropped; with p={p} about {p:.0%} are expected."
    yield Finding("share", abs(share - p) < 0.06, message)
    yield Finding("same", seen["again"] == seen["returned"], "Called twice with the same seed, it gave two results.")
    message = "Called with another seed, it dropped the same numbers."
    yield Finding("other", seen["other"] != seen["returned"], message)
    message = "Your function used PyTorch's global random generator: its state afterwards was another."
    yield Finding("generator", seen["generator"], message)
    yield one_function(seen)
    if seen["attached"]:
        yield from _dropout_gradients(seen, direction * mask / (1 - p))
        message = f"Besides the result, about {seen['kept']} bytes are kept for backward; at most {_MOST} are allowed."
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
            "Your gradient is right, and your Function keeps the mask (or x) for it. The seed is enough to make the "
            "mask again.",
            lambda case, seen: seen["attached"] and seen["kept"] > _MOST and _gradients_are(case, seen, _scale(case)),
        ),
        Misconception(
            "another mask in backward",
            "Your backward made a mask of its own. It drops other numbers than the forward did.",
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
