"""Judging stage 1, `record`: an array that remembers where it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from course_utils.checks.compare import close, listed, right_value
from course_utils.checks.data import Observation, Raised
from course_utils.checks.exercise import Finding, Misconception
from course_utils.checks.judges.lesson_11_build_your_own.oracle import failing, leaves_of
from course_utils.checks.judges.lesson_11_build_your_own.stages import Stage, exercise, raised, ran, told
from course_utils.checks.scenes.lesson_11_build_your_own.arrays import GIVEN, LEFT, ON_THREE_AXES, RIGHT, cube
from course_utils.checks.scenes.lesson_11_build_your_own.expressions import (
    Expression,
    operands,
    random_expressions,
    run,
    written,
)

_LEAF, _CONSTANT = "engine.tensor(array, requires_grad=True)", "engine.tensor(array)"
_FLAGS = {
    _LEAF: [True, False],
    _CONSTANT: [False, False],
    "leaf * constant": [True, True],
    "constant * leaf": [True, True],
    "constant * constant": [False, False],
    "2 * leaf": [True, True],
    "leaf[0]": [True, True],
    "leaf.reshape((2, 1))": [True, True],
}
_TRIED = {
    "shape": "Asking a tensor for its `shape`",
    "flags": "Asking `requires_grad` and `grad_fn` of results of leaves and constants",
    "shared": "Following `grad_fn` and `inputs` from `y * y + x`, where y = x.exp(),",
    "copied": "`engine.tensor(array, True).numpy()`",
    "in place": "`t += u`",
    "own array": "Asking a tensor for its array by `numpy()`",
}
_NUMBERS = {
    "1 - x": [0.5, -1.5],
    "3 + x": [3.5, 5.5],
    "2 * x": [1.0, 5.0],
    "x - 1": [-0.5, 1.5],
    "x + 3": [3.5, 5.5],
    "x * 2": [1.0, 5.0],
}


def _given(seed: int, count: int) -> dict[str, Any]:
    return {"expressions": random_expressions(seed, count)}


def _recorded(expression: Expression, seen: Any) -> str | None:
    """Say what is wrong with the record of one expression; None where nothing is."""
    if isinstance(seen, Raised):
        return f"raised {told(seen)}"
    count = len(expression["shapes"])
    with torch.no_grad():
        values = run(expression, leaves_of(expression))
    for number, (mine, right) in enumerate(zip(seen["values"], values[count:], strict=True), 1):
        found = right_value(mine, right, f"t{number}")
        if not found.ok:
            return f"gave another value. {found.message}"
    needs = list(expression["flags"])
    for step in expression["steps"]:
        needs.append(any(needs[n] for n in operands(step)))
    for number, (flag, made, need) in enumerate(zip(seen["flags"], seen["made"], needs[count:], strict=True), 1):
        if flag != need or made != need:
            has = f"requires_grad={flag} and {'a' if made else 'no'} grad_fn"
            return f"t{number} has {has}, and {'depends' if need else 'does not depend'} on a leaf that requires_grad"
    used = {len(needs) - 1}
    for n in range(len(needs) - 1, count - 1, -1):
        if n in used:
            used |= {m for m in operands(expression["steps"][n - count]) if needs[m]}
    for n, (reached, need) in enumerate(zip(seen["reached"], needs, strict=True)):
        name = "abcdefgh"[n] if n < count else f"t{n - count + 1}"
        if reached != (n in used) and need:
            missed = "is not found" if n in used else "is found, on which the result does not depend,"
            return f"{name} {missed} behind the last result, by way of grad_fn and inputs"
    return None


def _judge(given: dict[str, Any], seen: Observation) -> Iterator[Finding]:
    found = [*_single(seen)]
    yield from found
    if all(finding.ok for finding in found):  # else what is wrong has been said
        yield failing("random", given["expressions"], seen["random"], _recorded, written)


def _single(seen: Observation) -> Iterator[Finding]:
    yield from ran(seen, _TRIED)
    if not raised(seen["flags"]):
        for name, right in _FLAGS.items():
            flag, made = seen["flags"][name]
            text = f"`{name}` has requires_grad={flag} and {'a' if made else 'no'} grad_fn; "
            text += f"expected {right[0]}, and {'one' if right[1] else 'none'}."
            yield Finding("flags", [flag, made] == right, text)
    if not raised(seen["shared"]):
        made = not raised(seen["flags"]) and seen["flags"][_LEAF][1]
        yield from _shared(seen["shared"], made)
    text = "After `x = engine.tensor(array)` a change of `array` changes x. A tensor has numbers of its own."
    yield Finding("copied", raised(seen["copied"]) or seen["copied"] == [1.5, 2.5], text)
    text = (
        "After `c = engine.tensor(array)`, a constant, a change of `array` changes c. It has numbers of its own, too."
    )
    yield Finding("copied", raised(seen["constant copied"]) or seen["constant copied"] == [1.5, 2.5], text)
    for name, given in GIVEN.items():
        yield _like(seen["made"][name], np.asarray(given, dtype=np.float64), "whole", f"A tensor made of {name}")
    text = "`x[0] = 7.0` ran without an error. What a graph has recorded must not change below it: let it raise."
    yield Finding("assigned", seen["assigned"] != "no error", text)
    if not raised(seen["in place"]):
        for name, kinds in seen["in place"].items():
            text = f"`{name}` changed the tensor that t had been, {listed(kinds)}. Give a new one."
            yield Finding("in place", False, text)
    text = f"`t.shape` is {seen['shape']}; expected (2, 3), a tuple."
    yield Finding("shape", raised(seen["shape"]) or seen["shape"] == "(2, 3)", text)
    text = "`t.numpy()` gives a copy. It is to be the array of the tensor itself, which an optimizer will change."
    yield Finding("own array", seen["own array"] is not False, text)
    for name, wanted in _NUMBERS.items():
        mine = seen["numbers"][name]
        if raised(mine):
            yield Finding("numbers", False, f"`{name}` ended in {told(mine)}.")
        else:
            yield right_value(mine, torch.tensor(wanted, dtype=torch.float64), f"`{name}`")
    yield from _beside(seen["beside"])
    for name, done in ON_THREE_AXES.items():
        what = f"For x of shape (3, 2, 4) `{name}`"
        yield _like(seen["as in NumPy"][name], done(cube()), "as in NumPy", what)


def _beside(seen: Any) -> Iterator[Finding]:
    """Find what is wrong where an array stands on the right of a leaf."""
    left, right = np.array(LEFT), np.array(RIGHT)
    wanted = {
        "x + array": left + right,
        "x - array": left - right,
        "x * array": left * right,
        "x @ array": left @ right,
    }
    for name, array in wanted.items():
        mine = seen[name]
        yield _like(mine if raised(mine) else mine[0], array, "beside", f"For a leaf x `{name}`")
        text = f"For a leaf x `{name}` has no grad_fn, and depends on x."
        yield Finding("beside", raised(mine) or mine[1], text)


def _like(mine: Any, array: Any, prop: str, what: str) -> Finding:
    """Find whether numbers are those of an array, with its shape, in float64."""
    if raised(mine):
        return Finding(prop, False, f"{what} ended in {told(mine)}.")
    return replace(right_value(mine, torch.from_numpy(np.array(array)), what), prop=prop)


def _shared(seen: Any, made: bool) -> Iterator[Finding]:
    """Find what is wrong with a graph. `made`: a leaf has a grad_fn, so that none is found as a leaf."""
    if "without" in seen:
        yield Finding("flags", False, f"`{seen['without'][0]}` has no grad_fn, and depends on the leaf x.")
        return
    yield Finding("same", seen["same"], "`y.grad_fn` is another object each time that it is asked for.")
    text = f"For y * y the node's `inputs` have {seen['entries']} entries; expected one for each operand, 2."
    yield Finding("entries", seen["entries"] == 2, text)
    text = "For z = y + y the entries of `z.grad_fn.inputs` are to be `y.grad_fn`, twice."
    yield Finding("both", not seen["same"] or seen["entries"] != 2 or seen["doubled"], text)
    text = "For z = y * y both entries of `z.grad_fn.inputs` are to be `y.grad_fn` itself."
    yield Finding("both", not seen["same"] or (seen["both"] and seen["found"]), text)
    text = "For y = x.exp() the entry of its node is to be the leaf x itself, found once however often it is used."
    yield Finding("leaf", made or (seen["leaf"] and seen["leaves"] == 1), text)
    text = "The entry of an operand that needs no gradient is to be None."
    yield Finding("constant", seen["constant"], text)
    text = f"For {listed(f'`{it}`' for it in seen['turned'])} the first entry of the node's `inputs` is u. The first "
    yield Finding("in order", not seen["turned"], f"{text}operand's comes first.")
    yield Finding("named", seen["named"], "Each node has a `name`, a text.")


def _lost(case: Any, seen: Observation) -> bool:
    if raised(seen["flags"]):
        return False
    flags = seen["flags"]
    lost = [name for name in ("leaf[0]", "leaf.reshape((2, 1))") if not flags[name][1]]
    return bool(lost) and all(flags[name] == right for name, right in _FLAGS.items() if name not in lost)


def _half(case: Any, seen: Observation) -> bool:
    flags = seen["flags"]
    return not raised(flags) and flags["leaf * constant"] == [True, True] and flags["constant * leaf"] == [False, False]


STAGE = Stage("record", _given, _judge)

EXERCISE = exercise(
    STAGE,
    100,
    title="Record",
    difficulty=2,
    minutes=35,
    points=3,
    hints=(
        "Two classes are enough: a tensor, which holds an array, and a node, which is made when an operation runs. "
        "Which of them has to know the other?",
        "Write one function that all operations call: it gets the name, the array that came out and the operands, and "
        "decides whether there is a node. A number or an array as an operand becomes a constant tensor first.",
        "class Node with name and inputs. class Tensor with an array (a copy in float64), requires_grad and grad_fn. "
        "made(name, array, operands): if no operand requires_grad, a plain Tensor; else a Node whose inputs are, for "
        "each operand, its grad_fn, or the operand itself if it is a leaf, or None. Then the operators, and engine = "
        "SimpleNamespace(tensor=...).",
    ),
    misconceptions=(
        Misconception(
            "the left operand decides",
            "`constant * leaf` has no graph, `leaf * constant` has one. A result needs a gradient if any operand does.",
            _half,
        ),
        Misconception(
            "everything is recorded",
            "Your engine records operations on constants, too. Where no operand requires a gradient there is no node.",
            lambda case, seen: (
                not raised(seen["flags"])
                and seen["flags"]["constant * constant"] == [True, True]
                and seen["flags"][_CONSTANT] == _FLAGS[_CONSTANT]
            ),
        ),
        Misconception(
            "the graph ends at an index or a reshape",
            "What your index or reshape returns is cut off: it has no grad_fn. They are operations as any other, and "
            "gradients pass them.",
            _lost,
        ),
        Misconception(
            "the given array is kept",
            "Your tensor is made around the array that it is given, without a copy. Whoever changes that array later "
            "changes a leaf, below everything that was computed from it.",
            lambda case, seen: seen["copied"] == [7.0, 2.5],
        ),
        Misconception(
            "written in place",
            "`x[0] = 7.0` runs without an error. Results that were computed before would be results of numbers that "
            "are gone.",
            lambda case, seen: seen["assigned"] == "no error",
        ),
        Misconception(
            "+= writes into its operand",
            "`t += u` gave the tensor that t named other numbers, and whoever else holds that tensor now sees them. "
            "Without `__iadd__` Python makes a new tensor, as for `t = t + u`.",
            lambda case, seen: not raised(seen["in place"]) and "t += u" in seen["in place"],
        ),
        Misconception(
            "one entry for two operands",
            "In y * y your node has one entry for both operands. A set or a dict of operands holds each once: it "
            "forgets that one was used twice.",
            lambda case, seen: not raised(seen["shared"]) and seen["shared"].get("entries") == 1,
        ),
        Misconception(
            "operands in place of their nodes",
            "For y * y the entries of your node's `inputs` are the tensor y, and y has another node. They are to be "
            "y's node, `y.grad_fn`; only for a leaf the leaf itself. So the graph is nodes alone, and does not keep "
            "the tensors between them.",
            lambda case, seen: seen["entries"] == ["operand", "operand"],
        ),
        Misconception(
            "a new node each time",
            "Each time that `y.grad_fn` is asked for, it is another object. Nobody can tell by it which node of a "
            "graph y's is, or what has arrived there.",
            lambda case, seen: not raised(seen["shared"]) and seen["shared"].get("same") is False,
        ),
        Misconception(
            "a number on the left",
            "`1 - x` gave x - 1. With a number on the left Python calls `__rsub__`, whose operands come in the other "
            "order.",
            lambda case, seen: (
                not raised(seen["numbers"]["1 - x"])
                and close(seen["numbers"]["1 - x"], torch.tensor([-0.5, 1.5], dtype=torch.float64))
            ),
        ),
        Misconception(
            "whole numbers stay whole",
            "A tensor made of whole numbers keeps their dtype. What is computed in that dtype later, an update for "
            "instance, is cut to whole numbers, or raises.",
            lambda case, seen: getattr(seen["made"]["an array of int64"], "dtype", None) == "int64",
        ),
    ),
)
