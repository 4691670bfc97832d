"""Judging stage 2, `backward`: each node once, when all of its gradients are there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Array, Observation, Raised
from course_utils.checks.exercise import Finding, Misconception
from course_utils.checks.judges.lesson_11_build_your_own import record
from course_utils.checks.judges.lesson_11_build_your_own.oracle import difference, failing, leaves_of
from course_utils.checks.judges.lesson_11_build_your_own.stages import Stage, exercise, raised, told
from course_utils.checks.scenes.lesson_11_build_your_own.arrays import LEFT, RIGHT
from course_utils.checks.scenes.lesson_11_build_your_own.expressions import (
    Expression,
    random_expressions,
    run,
    written,
)
from course_utils.checks.scenes.lesson_11_build_your_own.named import NAMED, UPSTREAM

_NAMES = "abcdefgh"
_SHORTCUTS = ("a shortcut around one operation", "a shortcut that comes second")


def _given(seed: int, count: int) -> dict[str, Any]:
    return {"expressions": random_expressions(seed + 1, count)}


def passed(expression: Expression, start: bool) -> tuple[torch.Tensor, list[torch.Tensor | None]]:
    """Return the value of an expression and the gradients of its leaves, by PyTorch's own pass."""
    leaves = leaves_of(expression)
    result = run(expression, leaves)[-1]
    numbers = torch.tensor(UPSTREAM[: result.numel()], dtype=torch.float64).reshape(result.shape)
    result.backward(numbers if start else None)
    return result.detach(), [leaf.grad for leaf in leaves]


def _wrong(expression: Expression, seen: Any, start: bool = False) -> str | None:
    if isinstance(seen, Raised):
        return f"raised {told(seen)}"
    value, gradients = passed(expression, start)
    found = right_value(seen["value"], value, "The result")
    return found.message if not found.ok else difference(seen["gradients"], gradients, _NAMES[: len(gradients)])


def _judge(given: dict[str, Any], seen: Observation) -> Iterator[Finding]:
    for name, expression in NAMED.items():
        text = _wrong(expression, seen["named"][name], True)
        end = f"\n{written(expression)}"
        yield Finding("named", text is None, f"On {name}: {text.rstrip('.')}.{end}" if text else "")
        left = raised(seen["named"][name]) or seen["named"][name]["left"]
        text = f"On {name}: the pass wrote into the gradient that it was given, which is to stay as it was.{end}"
        yield Finding("given", left, text)
    for what, count in (*seen["counted"].items(), ("multiply, with two leaves behind it", seen["of two leaves"])):
        if raised(count):
            yield Finding("counted", False, f"A pass through joins of many paths raised {told(count)}.")
        else:
            text = f"In one call of backward() the rule of one node ({what}) ran {count} times. Its result is used "
            text += "in several places."
            yield Finding("counted", count <= 1, text)
    text = f"A chain of 1,500 operations ended in {told(seen['long'])}." if raised(seen["long"]) else ""
    yield Finding("long", not raised(seen["long"]), text)
    if not raised(seen["long"]):
        right = torch.tensor(1.001, dtype=torch.float64) ** 750
        found = right_value(seen["long"], right, "The gradient at the end of a chain of 1,500 operations")
        yield Finding("long value", found.ok, found.message)
    scaled = seen["scaled"]
    if raised(scaled):
        yield Finding("scaled", False, f"A pass from one number, with the gradient 3 given, ended in {told(scaled)}.")
    else:
        right = torch.tensor([6.0, 12.0], dtype=torch.float64)
        yield right_value(scaled, right, "The gradient of (x * x).sum() at [1, 2], by a pass that begins with 3,")
    single = seen["single"]
    if raised(single):
        text = f"backward() without a gradient, on a result of shape (1, 1), ended in {told(single)}. It is one number."
        yield Finding("single", False, text)
    else:
        right = torch.tensor([[4.0]], dtype=torch.float64)
        yield right_value(single, right, "The gradient of x * x + x at [[1.5]], by a pass that is given none,")
    what = "The gradient of `((x + array) * array - array) @ array`"
    if raised(seen["beside"]):
        yield Finding("beside", False, f"{what} was not found: the pass ended in {told(seen['beside'])}.")
    else:
        left, right = (torch.tensor(rows, dtype=torch.float64) for rows in (LEFT, RIGHT))
        yield replace(right_value(seen["beside"], (left @ right.T) * right, what), prop="beside")
    for name, what in (("without", "a result of two numbers, without a gradient,"), ("constant", "a constant")):
        got = seen[name]
        ended = told(got) if raised(got) else "no error"
        yield Finding(name, raised(got, "RuntimeError"), f"backward() on {what} gave {ended}; expected a RuntimeError.")
    yield failing("random", given["expressions"], seen["random"], _wrong, written)


def _gradient(seen: Observation, name: str, leaf: int = 0) -> Any:
    part = seen["named"][name]
    return None if isinstance(part, Raised) else part["gradients"][leaf]


def _shape(seen: Observation, name: str) -> Any:
    return getattr(_gradient(seen, name), "shape", None)


def _is(name: str, right: Callable[[list[torch.Tensor], torch.Tensor], torch.Tensor], leaf: int = 0) -> Any:
    """Return whether a gradient is what this formula gives from the leaves and the upstream gradient."""

    def seen(case: Any, seen: Observation) -> bool:
        leaves = [tensor.detach() for tensor in leaves_of(NAMED[name])]
        result = run(NAMED[name], leaves)[-1]
        start = torch.tensor(UPSTREAM[: result.numel()], dtype=torch.float64).reshape(result.shape)
        return close(_gradient(seen, name, leaf), right(leaves, start))

    return seen


def _right(seen: Observation, *names: str) -> bool:
    return all(_wrong(NAMED[name], seen["named"][name], True) is None for name in names)


def _too_early(case: Any, seen: Observation) -> bool:
    some = any(_right(seen, name) for name in ("a value used twice", *_SHORTCUTS))
    singly = some and _right(seen, "a square", "exp", "log") and _products(case, seen)
    return singly and not _one_of_two(case, seen) and not _right(seen, "a join of unequal depth", *_SHORTCUTS)


def _one_of_two(case: Any, seen: Observation) -> bool:
    """Return whether one of two gradients was kept: at a leaf, or at a result, in whichever order they come."""
    if any(_right(seen, name) for name in _SHORTCUTS):  # then it is the order of the nodes that goes wrong
        return False
    if any(_is("a value used twice", lambda x, g, k=k: k * g)(case, seen) for k in (2.0, 3.0)):  # type: ignore[misc]
        return True
    at_a_result = _is("the square of a sum", lambda x, g: (x[0].sum(0) * g).expand(2, 3))
    return _right(seen, "a value used twice", "a square") and bool(at_a_result(case, seen))


def _products(case: Any, seen: Observation) -> bool:
    """Return whether both gradients of a product of two tensors are right. In a square each stands for the other."""
    of_first = _is("a constant", lambda x, g: x[1] * g)
    of_second = _is("a column for all columns", lambda x, g: x[0] * g, leaf=1)
    return bool(of_first(case, seen) and of_second(case, seen))


def _broadcast(case: Any, seen: Observation) -> bool:
    row = _gradient(seen, "a row for all rows", 1)
    return isinstance(row, Array) and row.shape == (2, 3)


def _constant_has_one(case: Any, seen: Observation) -> bool:
    return _gradient(seen, "a constant", 1) is not None and _gradient(seen, "a constant", 0) is not None


def _many(case: Any, seen: Observation) -> bool:
    counts = seen["counted"].values()
    return any(isinstance(count, int) and count > 1 for count in counts) and _right(seen, *NAMED)


def _leaf_by_leaf(case: Any, seen: Observation) -> bool:
    return {*seen["counted"].values()} == {1} and seen["of two leaves"] == 2 and _right(seen, *NAMED)


def _turned(case: Any, seen: Observation) -> bool:
    others = (name for name, it in NAMED.items() if not any(step[0] == "matmul" for step in it["steps"]))
    return not _right(seen, "matmul") and _right(seen, *others)


STAGE = Stage("backward", _given, _judge, (record.STAGE,))

EXERCISE = exercise(
    STAGE,
    200,
    title="Backward",
    difficulty=4,
    minutes=60,
    points=5,
    hints=(
        "First ask in which order the nodes may run: a node may run when all the nodes that use its result have run. "
        "Then write the rules, one operation at a time; the check names the first that is wrong.",
        "Walk the graph once from the result, without recursion, and count for each node how many entries lead to it. "
        "Start with the result's node. When a node has run, add what it gives to what its inputs have so far, and "
        "count down; at zero an input is ready. Gradients of a broadcast operand are summed to its shape.",
        "gradients = {root: start}; waiting = counts of entries; ready = [root]. While ready: take a node, pop its "
        "gradient, run its rule, and for each entry that is not None add the part to gradients[entry], lower "
        "waiting[entry], and append it to ready at zero. What arrives at a leaf goes into its grad. Rules: mul gives "
        "g * b and g * a, matmul g @ b.T and a.T @ g, exp g * result, log g / a, relu g where a > 0, sum spreads g "
        "over the shape, index puts g where it came from with np.add.at, reshape goes back.",
    ),
    misconceptions=(
        Misconception(
            "the last one, not the sum",
            "Two gradients arrive at a value that is used twice, and your engine kept one of them. Each use brings its "
            "part: the gradient is their sum.",
            _one_of_two,
        ),
        Misconception(
            "once for each path",
            "The gradients of single operations are right, but a node whose result is used in several places ran more "
            "than once. Where it runs for each path anew, twenty joins in a row make a million times: wait until all "
            "of its gradients are there.",
            _many,
        ),
        Misconception(
            "once for each leaf",
            "The gradients are right, but a node with two leaves behind it ran twice, where one with a single leaf ran "
            "once: each leaf gets a pass of its own. One pass serves all leaves.",
            _leaf_by_leaf,
        ),
        Misconception(
            "run before all has arrived",
            "A node ran before all the nodes that use its result had run, and what arrived afterwards is lost, was "
            "counted twice, or ended in an error. It shows where one path is longer than the other.",
            _too_early,
        ),
        Misconception(
            "broadcasting not reduced",
            "The gradient of an operand that was broadcast has the shape of the result. The operand was used once for "
            "each copy, so its gradient is the sum over the copies.",
            _broadcast,
        ),
        Misconception(
            "an index written, not added",
            "Where an index names one place twice, your gradient has what came last. Each use brings its part: "
            "np.add.at adds them all.",
            _is("an index twice", lambda x, g: torch.stack([g[1], 0 * g[1], g[2]])),
        ),
        Misconception(
            "recursion",
            "Your pass, or the walk that prepares it, calls itself for each operation, one inside the other. A long "
            "chain of operations, such as a loop of a thousand steps, ends in a RecursionError.",
            lambda case, seen: raised(seen["long"], "RecursionError") and _right(seen, *NAMED),
        ),
        Misconception(
            "the upstream gradient left out",
            "Your pass begins with ones, whatever gradient it is given.",
            lambda case, seen: (
                _is("exp", lambda x, g: x[0].exp())(case, seen)
                and _is("a difference", lambda x, g: torch.ones_like(g))(case, seen)
            ),
        ),
        Misconception(
            "one use of two",
            "For x * x the gradient is x in place of 2x: of two entries that lead to one tensor, one was dropped.",
            lambda case, seen: (
                _is("a square", lambda x, g: x[0] * g)(case, seen)
                and _right(seen, "a value used twice")
                and _products(case, seen)
            ),
        ),
        Misconception(
            "relu by the gradient's sign",
            "Your rule of relu lets a gradient pass where the gradient is above zero. It passes where the input was.",
            _is("relu", lambda x, g: g.clamp(min=0)),
        ),
        Misconception(
            "a sign lost",
            "In a - b the gradient of b has the sign of that of a. b is subtracted, so its gradient is the negative.",
            _is("a difference", lambda x, g: g, leaf=1),
        ),
        Misconception(
            "the rule of matmul",
            "Of the operations only matmul is wrong. Of a @ b the gradient of a is g @ b.T and that of b is a.T @ g: "
            "the shapes leave no other way.",
            _turned,
        ),
        Misconception(
            "constants have gradients",
            "A tensor with requires_grad=False got a gradient. Nothing is computed for constants, and nothing stored.",
            _constant_has_one,
        ),
        Misconception(
            "any result will do",
            "backward() without a gradient ran on a result of two numbers. A gradient belongs to one number: let it "
            "raise a RuntimeError.",
            lambda case, seen: seen["without"] == "no error",
        ),
        Misconception(
            "relu passes at zero",
            "Where the input of relu is exactly 0, your rule lets the gradient pass. It passes where the input is "
            "greater than 0.",
            _is("relu", lambda leaves, g: g * (leaves[0] >= 0)),
        ),
        Misconception(
            "as many numbers, another shape",
            "The gradient of an operand of shape (3,) beside one of shape (1, 3) has shape (1, 3): it was broadcast, "
            "though it has as many numbers. Compare shapes, not their sizes.",
            lambda case, seen: (
                _shape(seen, "three numbers beside one row of three") == (1, 3) and _right(seen, "a row for all rows")
            ),
        ),
    ),
)
