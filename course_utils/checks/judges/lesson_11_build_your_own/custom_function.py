"""Judging stage 9, `custom_function`: an operation that somebody else writes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import torch

from course_utils.checks.compare import close, listed, right_value
from course_utils.checks.data import Observation
from course_utils.checks.exercise import Finding, Misconception
from course_utils.checks.judges.lesson_11_build_your_own import backward
from course_utils.checks.judges.lesson_11_build_your_own.stages import Stage, exercise, nothing, raised, ran, told
from course_utils.checks.judges.loops import times

_two = partial(torch.tensor, dtype=torch.float64)
_ARRAYS = ("numpy.ndarray", "numpy.float64")
_INPUTS = ("a result that needs a gradient, a leaf and a number", "a leaf, a constant and a number")
_NEEDS = [[True, True, False], [True, False, False]]
_TRIED = {
    "own": "Applying a function to one tensor, using the result three times, and a pass",
    "mixed": "Applying a function to two tensors and a number, twice, and a pass",
    "unwanted": "A pass through a function of a constant and a leaf, whose backward returns a gradient for both,",
    "not needed": "Applying a function to a constant, and another that nothing comes of, and a pass",
    "quiet": "Applying a function inside `with engine.no_grad()`",
    "number": "A pass through a function of a leaf and a number, whose backward returns None for the number,",
    "number first": "A pass through a function of a number and a leaf, whose backward returns None for the number,",
    "one saved": "A pass through a function that saves one array, and takes it out by `(x,) = ctx.saved_tensors`,",
    "again": "Two passes through a function, the first with retain_graph=True,",
    "tuple": "A pass through a function of one input, whose backward returns a tuple with one gradient,",
    "none": "A pass through a function whose backward returns None for a result that needs a gradient",
}


@cache
def _mixed() -> tuple[torch.Tensor, list[Any]]:
    """Return the value and the gradients of a * b * 10 and b * c * 2 together, by PyTorch."""
    a, b = (_two(numbers, requires_grad=True) for numbers in ([1.5, 2.0], [0.5, 3.0]))
    c = _two([4.0, 5.0])
    value = a * b * 10.0
    (value.sum() + (b * c * 2.0).sum()).backward()
    return value.detach(), [a.grad, b.grad]


def _judge(given: dict[str, Any], seen: Observation) -> Iterator[Finding]:
    if not raised(seen["own"]):
        text = "The result of a function has no graph: no grad_fn, or requires_grad=False."
        yield Finding("made", seen["own"]["made"], text)
        if not seen["own"]["made"]:  # and no pass can run
            return
        yield from _own(seen["own"])
    yield from ran(seen, _TRIED)
    if not raised(seen["mixed"]):
        value, gradients = _mixed()
        yield right_value(seen["mixed"]["value"], value, "The result of a function of two tensors and a number")
        for name, mine, right in zip("ab", seen["mixed"]["gradients"], gradients, strict=True):
            yield right_value(mine, right, f"The gradient of {name} through two calls of one function")
        yield _flags(seen["mixed"]["needs"])
        others = list(dict.fromkeys(name for name in seen["mixed"]["number"] if name != "float"))
        text = (
            f"A number that was given to `apply` came to forward as {listed(others)}. What is no tensor stays as it is."
        )
        yield Finding("as it is", not others, text)
        yield _arrays(seen["mixed"]["types"], "backward got, or found in `ctx.saved_tensors`,")
        count = seen["mixed"]["backward"]
        text = f"For two calls of a function of several inputs backward ran {count} times in a pass; expected 2."
        yield Finding("mixed backward", count == 2, text)
    if not raised(seen["unwanted"]):
        text = (
            "A constant has a .grad, as the backward of a function returned one for it. What nobody needs goes nowhere."
        )
        yield Finding("constant", seen["unwanted"]["constant"] is None, text)
        leaf = "The gradient of a leaf behind a constant, for which backward returned another,"
        yield right_value(seen["unwanted"]["leaf"], _two([3.0, 3.0]), leaf)
    if not raised(seen["not needed"]):
        text = "The result of a function of constants has a grad_fn."
        yield Finding("not made", not seen["not needed"]["made"], text)
        text = "The result of a function of constants says that it requires a gradient."
        yield Finding("not made", seen["not needed"]["made"] or not seen["not needed"]["needs"], text)
        count = seen["not needed"]["backward"]
        text = f"A backward that no gradient reaches ran {times(count)}; it is not to run."
        yield Finding("not run", count == 0, text)
    if not raised(seen["none"]):
        yield from _left(seen["none"])
    if not raised(seen["quiet"]):
        text = "Inside `with engine.no_grad()` the result of a function has a graph. There nothing is recorded."
        yield Finding("quiet", seen["quiet"] in (None, [False, False]), text)
    if not raised(seen["number"]):
        yield right_value(seen["number"], _two([3.0, 3.0]), "The gradient of a leaf beside a number")
    if not raised(seen["number first"]):
        yield right_value(seen["number first"], _two([3.0, 3.0]), "The gradient of a leaf that comes after a number")
    if not raised(seen["one saved"]):
        yield right_value(seen["one saved"], _two([3.0, 4.0]), "The gradient by a function that saves one array")
    if not raised(seen["again"]):
        text = f"In two passes through a function its backward ran {seen['again']} times; expected 2."
        yield Finding("mixed backward", seen["again"] in (None, 2), text)
    if not raised(seen["tuple"]):
        yield right_value(seen["tuple"], _two([7.0, 7.0]), "The gradient by a function whose backward returns (7 * g,)")
    several = {"too few": "one gradient", "too many": "three gradients", "one None more": "two gradients and a None"}
    for name, what in several.items():
        got = told(seen[name]) if raised(seen[name]) else "no error"
        text = f"A backward that gives {what} for two inputs ended in {got}; expected a RuntimeError."
        prop = "too few" if name == "too few" else "too many"
        yield Finding(prop, raised(seen[name], "RuntimeError"), text)


def _flags(calls: list[list[bool]]) -> Finding:
    """Find whether the flags of two calls are right, or of more, where forward ran again."""
    if len(calls) == len(_NEEDS):
        for what, mine, right in zip(_INPUTS, calls, _NEEDS, strict=True):
            if mine != right:
                return Finding("needs", False, f"For {what} `ctx.needs_input_grad` was {mine}; expected {right}.")
    needs = [list(flags) for flags in dict.fromkeys(map(tuple, calls))]
    text = f"`ctx.needs_input_grad` was {needs}; expected {_NEEDS}: whether each input, in order, needs a gradient."
    return Finding("needs", needs == _NEEDS, text)


def _arrays(names: list[str], what: str) -> Finding:
    others = [name for name in names if name not in _ARRAYS]
    return Finding("types", not others, f"{what} {listed(dict.fromkeys(others))}; expected NumPy's arrays.")


def _left(seen: Any) -> Iterator[Finding]:
    yield right_value(seen["a"], _two([6.0, 6.0]), "The gradient of the first input, where the second is given None,")
    right = _two([4.0, 5.0]) * _two([0.5, 3.0]).exp()
    text = "The gradient of what a function gives None to, and another operation uses,"
    yield right_value(seen["b"], right, text)
    text = "A leaf that only a None arrives at got a gradient other than zero."
    yield Finding("given", seen["alone"] is None or close(seen["alone"], _two([0.0, 0.0])), text)
    text = (
        "A leaf that was given to a function, whose backward returns None for it, got a .grad. Nothing arrives there."
    )
    yield Finding("given", seen["given"] is None and seen["only"] is None, text)
    text = "The backward of a function ran in a pass in which another gives None to its result: no gradient arrives."
    yield Finding("not run", seen["backward"] == 0, text)


def _own(seen: Any) -> Iterator[Finding]:
    yield right_value(seen["value"], _two([1.5, 2.0]) ** 3, "The result of a function")
    text = f"Behind the result of a function of a leaf are {seen['nodes']} nodes; expected one, the function's."
    yield Finding("nodes", seen["nodes"] == 1, text)
    yield right_value(seen["gradient"], _upstream() * 7.0, "The gradient by a function whose backward returns 7 * g")
    for half in ("forward", "backward"):
        count = len(seen[half])
        text = f"The {half} of a function that is applied once, in one pass, ran {count} times."
        yield Finding(half, count <= 1, text)
    yield _arrays(seen["types"], "forward and backward got")


def _upstream() -> torch.Tensor:
    y = (_two([1.5, 2.0]) ** 3).requires_grad_()
    (y * 2.0 + (y + y.exp() * 0.0)).sum().backward()
    return y.grad  # type: ignore[return-value]


def _derivative(case: Any, seen: Observation) -> bool:
    if raised(seen["own"]):
        return False
    return close(seen["own"]["gradient"], 3 * _two([1.5, 2.0]) ** 2 * _upstream())


def _right_rule(seen: Observation) -> bool:
    return not raised(seen["own"]) and close(seen["own"]["gradient"], 7 * _upstream())


def _needs(case: Any, seen: Observation) -> bool:
    return not raised(seen["mixed"]) and seen["mixed"]["needs"] == [[True] * 3] * 2


def _shared(case: Any, seen: Observation) -> bool:
    if raised(seen["mixed"]) or not _right_rule(seen):
        return False
    a = seen["mixed"]["gradients"][0]
    return close(a, _two([4.0, 5.0]) * 2.0)


def _times(half: str, least: int) -> Any:
    return lambda case, seen: not raised(seen["own"]) and len(seen["own"][half]) >= least


STAGE = Stage("custom_function", nothing, _judge, (backward.STAGE,))

EXERCISE = exercise(
    STAGE,
    1,
    title="A custom function",
    difficulty=3,
    minutes=30,
    points=3,
    hints=(
        "Your own operations have a forward and a rule. Which part of your engine joins the two, and what would it "
        "need of somebody else's?",
        "`apply` is a class method. It makes a ctx, calls forward with the arrays inside the tensors, and makes a "
        "result by the function that all your operations use. Its rule calls backward with the same ctx.",
        "class Function: @classmethod apply(cls, *inputs): ctx = a new object; ctx.needs_input_grad = a flag for each "
        "input (False for what is no tensor); array = cls.forward(ctx, *arrays). The rule: given = cls.backward(ctx, "
        "g's array), made a tuple if it is none; if its length is not that of inputs, raise RuntimeError; None where "
        "it is None, else a tensor. The operands are the inputs, with a constant for what is no tensor.",
    ),
    misconceptions=(
        Misconception(
            "the derivative of forward",
            "The gradient is the derivative of what forward computes. The operations inside forward were recorded, and "
            "the function's own backward was not asked.",
            _derivative,
        ),
        Misconception(
            "backward for each part",
            "Where the result of a function is used several times, its backward ran more than once. It is the rule of "
            "one node, and runs once.",
            _times("backward", 2),
        ),
        Misconception(
            "forward again",
            "forward ran more than once for one call of apply. It may be dear, or random.",
            _times("forward", 2),
        ),
        Misconception(
            "everything needs a gradient",
            "`ctx.needs_input_grad` says True for every input, also for constants and numbers. A backward then "
            "computes what nobody wants.",
            _needs,
        ),
        Misconception(
            "every tensor needs a gradient",
            "`ctx.needs_input_grad` says True for every tensor, also for a constant. A backward then computes what "
            "nobody wants. Ask each for its requires_grad.",
            lambda case, seen: not raised(seen["mixed"]) and seen["mixed"]["needs"] == [[True, True, False]] * 2,
        ),
        Misconception(
            "one ctx for all calls",
            "Two calls of one function share what they saved: the second one's arrays took the place of the first "
            "one's. Each call has a ctx of its own.",
            _shared,
        ),
        Misconception(
            "too few, and silent",
            "A backward that returned one gradient for two inputs went through. Nothing then tells that the second "
            "input's is missing.",
            lambda case, seen: seen["too few"] == "no error" and _right_rule(seen),
        ),
        Misconception(
            "a result without a graph",
            "The result of a function has no graph. It is made by your engine like any other result, with the "
            "function's backward as its rule.",
            lambda case, seen: not raised(seen["own"]) and not seen["own"]["made"],
        ),
        Misconception(
            "tensors only",
            "A function whose input is a number ended in an error. What is no tensor is passed to forward as it is.",
            lambda case, seen: raised(seen["number"]) and _right_rule(seen) and not _none(seen["number"]),
        ),
        Misconception(
            "None refused",
            "A backward that returns None for an input ended in an error. None says that no gradient goes there.",
            lambda case, seen: (
                _right_rule(seen)
                and raised(seen["number"] if raised(seen["mixed"]) else seen["none"])
                and (not raised(seen["mixed"]) or _none(seen["mixed"]))
            ),
        ),
        Misconception(
            "a node for constants",
            "A function of constants made a node. As with your own operations, there is one if an operand needs a "
            "gradient.",
            lambda case, seen: not raised(seen["not needed"]) and seen["not needed"]["made"],
        ),
        Misconception(
            "tensors inside",
            "forward or backward was given something else than NumPy's arrays, such as a tensor of your engine. They "
            "get arrays, and return them.",
            lambda case, seen: _right_rule(seen) and any(name not in _ARRAYS for name in seen["own"]["types"]),
        ),
    ),
)


def _none(error: Any) -> bool:
    return "None" in error.message
