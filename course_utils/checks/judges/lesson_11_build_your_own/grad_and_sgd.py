"""Judging stage 7, `grad_and_sgd`: gradients that add up, and a step down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Array, Observation
from course_utils.checks.exercise import Finding, Misconception
from course_utils.checks.judges.lesson_11_build_your_own import backward
from course_utils.checks.judges.lesson_11_build_your_own.stages import Stage, exercise, raised, ran
from course_utils.checks.scenes.numbers import numbers

_two = partial(torch.tensor, dtype=torch.float64)


def _given(seed: int, count: int) -> dict[str, Any]:
    sizes = {"inputs": (5, 3), "targets": (5, 2), "w": (3, 2), "b": (), "unused": (2,)}
    arrays = {name: Array.of(numbers(seed + n, *size).double()) for n, (name, size) in enumerate(sizes.items())}
    return {**arrays, "rate": 0.05}


def _steps(given: dict[str, Any], way: str = "") -> list[list[torch.Tensor]]:
    """Return the parameters after each step, with PyTorch's gradients; or, in a wrong way, what that gives."""
    parameters = [given[name].tensor().requires_grad_() for name in ("w", "unused", "b")]
    w, _, b = parameters
    rate = {"uphill": -given["rate"], "still": 0.0}.get(way, given["rate"])
    after = []
    for step in range(4):
        if way != "uncleared":
            w.grad = b.grad = None
        error = (given["inputs"].tensor() + 0.1 * step) @ w + b - given["targets"].tensor()
        ((error * error).sum() * 0.1).backward()
        with torch.no_grad():
            for parameter in (w, b) if way != "ends" else (w,):
                parameter -= rate * parameter.grad
        after.append([parameter.detach().clone() for parameter in parameters])
    return after


_TRIED = {
    "added": "Running two passes to one leaf, from two results,",
    "apart": "Running a pass with a given gradient to two leaves",
    "cleared": "A pass and zero_grad(), with no step between, and both again,",
    "trained": "Four steps of SGD over three parameters, one of which is not used,",
}


def _judge(given: dict[str, Any], seen: Observation) -> Iterator[Finding]:
    yield from ran(seen, _TRIED)
    if not raised(seen["added"]):
        added = seen["added"]
        found = right_value(added["second"], _two([5.0, 5.0]), "The .grad after a second pass, of another result,")
        yield Finding("second", found.ok, found.message)
        text = "After a pass an intermediate result has a .grad. Only leaves keep theirs."
        yield Finding("between", added["between"] is None, text)
        text = "After a pass the result that it began at has a .grad. Only leaves keep theirs."
        yield Finding("between", added["begun"] is None, text)
    if not raised(seen["apart"]):
        apart = seen["apart"]
        text = "For (x + y).backward() and then (y * 3).sum().backward(), the second pass changed {}."
        one = close(apart["x"], _two([1.0, 1.0])) and apart["x"] == apart["x after"]
        yield Finding("apart", one, text.format("the .grad of x"))
        start = close(apart["given"], _two([1.0, 1.0]))
        yield Finding("given", start, text.format("the gradient that the first was given"))
        text = "After (x + y).backward(g) two of x.grad, y.grad and g are one array. Each leaf has one of its own."
        yield Finding("own", not apart["shared"] or not one or not start, text)
        found = right_value(apart["y"], _two([4.0, 4.0]), "The .grad of y")
        yield Finding("second", found.ok, found.message)
    if not raised(seen["trained"]):
        yield from _trained(given, seen["trained"])
    if not raised(seen["cleared"]):
        text = "After a pass and zero_grad(), with no step between, a .grad is neither None nor zero."
        yield Finding("cleared", _all_cleared(seen["cleared"]), text)


def _trained(given: dict[str, Any], seen: Any) -> Iterator[Finding]:
    steps = [
        right_value(value, wanted, f"After step {number} {name}")
        for number, (mine, right) in enumerate(zip(seen["after"], _steps(given), strict=True), 1)
        for name, value, wanted in zip(("w", "a parameter without a gradient", "b"), mine, right, strict=True)
    ]
    cleared = all(_all_cleared(values) for values in seen["cleared"])
    first = all(found.ok for found in steps[:3])
    for found in steps if cleared or not first else ():  # else the later ones go by gradients that stayed
        yield Finding("steps", found.ok, found.message)
    text = "After zero_grad() a parameter has a .grad that is neither None nor zero."
    yield Finding("cleared", cleared or not first, text)
    text = "step() changed the .grad of a parameter. It reads gradients; zero_grad() clears them."
    yield Finding("left", all(seen["left"]), text)
    text = "After step() the array that `numpy()` gave before holds the old numbers: the tensor has a new array."
    yield Finding("in place", seen["in place"] or not first, text)
    text = "After step() a parameter is no leaf any more: it has a grad_fn, or requires no gradient."
    yield Finding("leaves", all(state == [True, False] for state in seen["states"]), text)


def _all_cleared(values: list[Any]) -> bool:
    return all(value is None or not value.tensor().any() for value in values)


def _like(way: str) -> Callable[..., bool]:
    """Return whether the parameters are after each step what this wrong way gives."""

    def seen(case: Any, seen: Observation) -> bool:
        if raised(seen["trained"]):
            return False
        wrong = _steps(case.given, way)
        pairs = zip(seen["trained"]["after"], wrong, strict=True)
        return all(close(a, b) for mine, other in pairs for a, b in zip(mine, other, strict=True))

    return seen


STAGE = Stage("grad_and_sgd", _given, _judge, (backward.STAGE,))

EXERCISE = exercise(
    STAGE,
    1,
    title="A .grad that adds, and SGD",
    difficulty=2,
    minutes=25,
    points=3,
    hints=(
        "Where a leaf's gradient is stored, look at what is there. And ask of each array that you store who else has "
        "it.",
        "None becomes the gradient, in memory of its own; anything else becomes the sum. SGD needs the tensors "
        "themselves, not their numbers, and changes the array inside them without the engine noticing.",
        "leaf.grad = a new tensor of a copy of g if leaf.grad is None, else one of leaf.grad's numbers + g's. class "
        "SGD: __init__ keeps list(parameters) and lr; step: for each with a grad, array -= lr * grad's array; "
        "zero_grad: grad = None.",
    ),
    misconceptions=(
        Misconception(
            "written, not added",
            "After a second pass `.grad` has what that pass brought: the first one's is overwritten. It adds up until "
            "somebody clears it.",
            lambda case, seen: not raised(seen["added"]) and close(seen["added"]["second"], _two([3.0, 3.0])),
        ),
        Misconception(
            "one array for two",
            "Two leaves have one array as their `.grad`: the rule of + passes the same on to both. When the next pass "
            "adds into it, both change.",
            lambda case, seen: (
                not raised(seen["apart"])
                and close(seen["apart"]["x after"], _two([4.0, 4.0]))
                and not close(seen["apart"]["given"], _two([4.0, 4.0]))
            ),
        ),
        Misconception(
            "added into the given gradient",
            "The gradient that was given to backward() became the `.grad` of a leaf, and a later pass added into it. "
            "Whoever gave it still uses it.",
            lambda case, seen: not raised(seen["apart"]) and close(seen["apart"]["given"], _two([4.0, 4.0])),
        ),
        Misconception(
            "new tensors",
            "step() leaves the tensors that it was given as they are: it makes new ones, finds no gradient, or has no "
            "tensors, as an iterator that has been gone through has none left. Keep a list, and change the numbers of "
            "the tensors in it.",
            _like("still"),
        ),
        Misconception(
            "uphill",
            "step() adds the gradient. It points to where the loss grows, so it is subtracted.",
            _like("uphill"),
        ),
        Misconception(
            "ends at None",
            "No parameter behind the first one whose `grad` is None moved. step() is to skip that one, and to go on to "
            "the next.",
            _like("ends"),
        ),
        Misconception(
            "step clears",
            "step() clears the gradients. Somebody may want to look at them, or to add to them: that is zero_grad()'s.",
            lambda case, seen: (
                not raised(seen["trained"]) and all(seen["trained"]["emptied"]) and _like("")(case, seen)
            ),
        ),
        Misconception(
            "zero_grad does nothing",
            "zero_grad() leaves the gradients: each step goes by the sum of all so far.",
            _like("uncleared"),
        ),
        Misconception(
            "None is an error",
            "A parameter that no pass has reached has None for a gradient, and an error came of that, in step() or in "
            "zero_grad(). It is to be left out.",
            lambda case, seen: (
                raised(seen["trained"]) and "NoneType" in seen["trained"].message and not raised(seen["added"])
            ),
        ),
        Misconception(
            "intermediate results have one",
            "After a pass an intermediate result has a `.grad`. With every result that you keep, its gradient stays in "
            "memory.",
            lambda case, seen: not raised(seen["added"]) and seen["added"]["between"] is not None,
        ),
        Misconception(
            "the step is recorded",
            "After a step your parameter is the result of an operation, with a grad_fn. The next pass would go on "
            "into the step before.",
            lambda case, seen: not raised(seen["trained"]) and [True, True] in seen["trained"]["states"],
        ),
    ),
)
