"""Judging stage 5, `create_graph`: a backward pass that is itself recorded."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch

from course_utils.checks.compare import close, listed, right_value
from course_utils.checks.data import Observation
from course_utils.checks.exercise import Finding, Misconception
from course_utils.checks.judges.lesson_11_build_your_own import backward
from course_utils.checks.judges.lesson_11_build_your_own.oracle import difference, failing
from course_utils.checks.judges.lesson_11_build_your_own.stages import Stage, exercise, raised, ran
from course_utils.checks.judges.lesson_11_build_your_own.twice import twice, wrong_twice
from course_utils.checks.scenes.lesson_11_build_your_own.expressions import (
    random_expressions,
    written,
)
from course_utils.checks.scenes.lesson_11_build_your_own.named import NAMED, POSITIVE, everything, thrice

_SINGLE = ("a square", "exp", "log", "matmul", "the square of an index", "the square of a sum")

_TRIED = {
    "returned": "`engine.grad((x * x).sum(), [x])`",
    "freed": "A pass over `(x.exp() * x).sum()`, by backward() or by engine.grad,",
    "third": "Taking three derivatives of x * x * x * x, each with create_graph=True,",
    "plain": "`engine.grad(y, [x], retain_graph=True)`, then `engine.grad(y, [x])`,",
    "created": "A pass with create_graph=True over `(x.exp() * x * u).sum()`, and one more without it,",
    "switched": "Passes by engine.grad, with and without create_graph=True,",
    "left": "`engine.grad(y, [x])` after a `backward()` to x",
    "given": "`engine.grad((x * x).sum(), [x], gradient=g)`, then `engine.grad(x * x, [x], v, None, True)`,",
    "asked": "`engine.grad(y, [x, y, x])`",
    "inside": "`engine.grad(y, [x], create_graph=True)` inside `with engine.no_grad()`",
    "inner": "`engine.grad(y, [h, u, x])`, for y = (h * h).sum() of h = x.exp() and a leaf u that is not used,",
}


def _given(seed: int, count: int) -> dict[str, Any]:
    return {"expressions": random_expressions(seed + 2, count)}


def _judge(given: dict[str, Any], seen: Observation) -> Iterator[Finding]:
    if not raised(seen["returned"]):
        yield from _returned(seen["returned"])
        if not seen["returned"]["several"]:  # and nothing can be taken out of it
            return
    wrong = [(it, name, text) for name, it in NAMED.items() if (text := wrong_twice(it, seen["named"][name], True))]
    shown = "".join(f"On {name}: {text.rstrip('.')}.\n{written(it)}" for it, name, text in wrong[:1])
    random = failing("random", given["expressions"], seen["random"], wrong_twice, written)
    both = not wrong and random.ok
    yield from ran(seen, {name: text for name, text in _TRIED.items() if both or name != "third"})
    yield Finding("named", not wrong, shown)
    if not wrong:
        yield random
    if both and not raised(seen["third"]):
        right = torch.tensor([12.0, 48.0], dtype=torch.float64)
        yield right_value(seen["third"][0], right, "The third derivative of x * x * x * x")
        yield right_value(seen["third"][1], _third(), "The third derivative of a formula with every operation")
    if not raised(seen["plain"]):
        how = (
            "After backward() x.grad"
            if seen["plain"]["flags"][:2] == [False, False]
            else "Without create_graph a gradient"
        )
        text = f"{how} has a graph of its own. Nothing is to be recorded in such a pass."
        yield Finding("plain", seen["plain"]["flags"] == [False, False, False], text)
    if not raised(seen["freed"]):
        yield from _freed(seen["freed"])
    if not raised(seen["created"]):
        yield from _created(seen["created"])
    if not raised(seen["switched"]):
        outside, inside = (seen["switched"][name] for name in ("outside", "inside"))
        text = f"After {listed(outside)} `x * x` is no longer recorded. A pass leaves recording as it was."
        yield Finding("on", not outside, text)
        text = f"Inside `with engine.no_grad()` `x * x` is recorded after {listed(inside)}: the pass switched it on."
        yield Finding("off", not inside, text)
    if not raised(seen["left"]):
        text = "`engine.grad` changed a .grad that an earlier backward() had left. It leaves every .grad alone."
        x, u = (torch.tensor(one, dtype=torch.float64) for one in ([3.0, 3.0], [1.5, 6.0]))
        yield Finding("grad", close(seen["left"]["x"], x) and close(seen["left"]["u"], u), text)
    if not raised(seen["given"]):
        right = torch.tensor([3.0, 12.0], dtype=torch.float64)
        yield right_value(seen["given"]["single"], right, "The gradient of one number, from a gradient of 3,")
        right = torch.tensor([2.0, 96.0], dtype=torch.float64)
        yield right_value(
            seen["given"]["of given"], right, "The derivative with respect to the gradient that was given"
        )
        text = "`engine.grad(x * x, [x], v)`, for a v that requires a gradient, returned one with a graph. Without "
        yield Finding("plain", not seen["given"]["recorded"], text + "create_graph nothing is recorded.")
    if not raised(seen["asked"]):
        once, one = torch.tensor([1.0, 4.0], dtype=torch.float64), torch.tensor(1.0, dtype=torch.float64)
        mine = seen["asked"]["twice"]
        text = f"`engine.grad(y, [x, y, x])` returned {len(mine)} gradients; expected 3."
        yield Finding("as asked", len(mine) == 3, text)
        for found, right, what in zip(mine, (once, one, once), ("x", "y itself", "x, asked for again,"), strict=False):
            yield right_value(found, right, f"The gradient of {what}")
    if not raised(seen["inside"]):
        text = "Inside `with engine.no_grad()` a pass with create_graph=True is not recorded."
        yield Finding("recorded", seen["inside"] is True, text)
    if not raised(seen["inner"]):
        h = torch.tensor([0.5, 2.0], dtype=torch.float64).exp()
        yield right_value(seen["inner"]["inner"], 2 * h, "The gradient of an intermediate result")
        yield right_value(seen["inner"]["leaf"], 2 * h * h, "The gradient of the leaf behind it")
        text = "For an input on which the result does not depend, `engine.grad` gives something else than None."
        leaf = seen["named"]["a leaf that is not used"]
        none = seen["inner"]["unused"] is None and (raised(leaf) or leaf["first"][1] is None)
        yield Finding("unused", none, text)


@cache
def _third() -> torch.Tensor:
    x = torch.tensor(POSITIVE, dtype=torch.float64, requires_grad=True)
    third: torch.Tensor = thrice(torch.autograd.grad, everything(x), x)
    return third.detach()


def _returned(seen: Any) -> Iterator[Finding]:
    text = f"`engine.grad(y, [x])` returned one thing, of type {seen['kind']}; expected a list with one gradient."
    yield Finding("list", seen["several"], text)
    text = f"`engine.grad(y, [x])` returned {listed(seen['arrays'])} in its list; expected a tensor of your engine."
    yield Finding("tensors", not seen["arrays"], text)


def _freed(seen: Any) -> Iterator[Finding]:
    """An engine that does not free yet, as stage 3 asks, need not do so here."""
    text = "A second pass after backward() raises, and after `engine.grad(y, [x])` it does not: the graph is retained."
    yield Finding("freed", seen["backward"] or not seen["plain"], text)
    text = "After `engine.grad(y, [x], create_graph=True, retain_graph=False)` the graph of y is still there."
    yield Finding("not retained", seen["backward"] or not seen["not retained"], text)


def _created(seen: Any) -> Iterator[Finding]:
    before, after = seen["nodes"]
    text = f"Behind the result were {before} nodes, and {after} after a pass with create_graph=True."
    yield Finding("nodes", before == after, text)
    text = "A pass with create_graph=True changed a node behind the result: its name, or its inputs."
    yield Finding("nodes", seen["same graph"] or before != after, text)
    x = torch.tensor([0.5, 2.0], dtype=torch.float64)
    right = x.exp() * (1 + x)
    yield right_value(seen["first"], right, "A gradient with create_graph=True")
    found = right_value(seen["second"], right, "The gradient of a second pass after it")
    yield Finding("after", found.ok, found.message)
    text = "`engine.grad` wrote into x.grad. It returns gradients, and leaves every .grad alone."
    yield Finding("grad", seen["grad"] is None, text)


def _right(seen: Observation, *names: str) -> bool:
    return all(wrong_twice(NAMED[name], seen["named"][name], True) is None for name in names)


def _first_right(seen: Observation) -> bool:
    return all(
        not raised(mine) and difference(mine["first"], twice(NAMED[name], True)[0], twice(NAMED[name], True)[2]) is None
        for name, mine in seen["named"].items()
    )


def _but(*wrong: str) -> Any:
    """Return whether these expressions are wrong, and the single operations besides them right."""

    def seen(case: Any, seen: Observation) -> bool:
        others = [name for name in _SINGLE if name not in wrong]
        return not any(_right(seen, name) for name in wrong) and _right(seen, *others)

    return seen


def _operands_cut(case: Any, seen: Observation) -> bool:
    """Return whether some gradients of single operations do not depend on the leaves: then g * g is what is left."""
    wrong = [seen["named"][name] for name in ("a square", "log", "matmul") if not _right(seen, name)]
    if not wrong or any(map(raised, wrong)) or not _right(seen, "exp"):
        return False
    return all(close(b, a.tensor() ** 2) for mine in wrong for a, b in zip(mine["first"], mine["second"], strict=True))


def _flags(seen: Observation) -> list[bool]:
    return [any(mine["flags"]) for name, mine in seen["named"].items() if name in _SINGLE and not raised(mine)]


STAGE = Stage("create_graph", _given, _judge, (backward.STAGE,))

EXERCISE = exercise(
    STAGE,
    60,
    title="Create a graph",
    difficulty=5,
    minutes=70,
    points=5,
    hints=(
        "A rule computes with numbers. If it computed with your own tensors, and your engine recorded as in a forward, "
        "what would be behind the gradient?",
        "Write each rule with the operations that you have: g * b, g @ b.T, sums and reshapes. Some need a new "
        "operation, with a rule of its own: turn a matrix, put numbers back at an index. Let recording be a switch, "
        "on in a pass with create_graph=True and off in any other.",
        "The kept operands are tensors, with their graphs. exp keeps the array of its result; in the rule make a "
        "tensor of it whose grad_fn is the node itself. log: g times the inverse of a, an operation whose rule is -g "
        "y y. engine.grad runs the same pass as backward, but returns what arrived at the inputs asked for; for an "
        "intermediate one that is what arrived at its grad_fn.",
    ),
    misconceptions=(
        Misconception(
            "numbers without a graph",
            "With create_graph=True your gradients have the right numbers and no graph behind them. Either the rules "
            "are not recorded while they run, or what they read is made of numbers alone, and leads nowhere back.",
            lambda case, seen: _first_right(seen) and _flags(seen) == [False] * len(_SINGLE),
        ),
        Misconception(
            "own results are constants",
            "The rule of exp multiplies by the kept result as if it were a constant. It depends on the input, and has "
            "the node that made it as its grad_fn.",
            # Where the pass frees the graph, exp alone misses what it kept: another slip.
            lambda case, seen: not raised(seen["created"], "RuntimeError") and _but("exp")(case, seen),
        ),
        Misconception(
            "operands are constants",
            "A rule, that of *, of @ or of log, computes with the operands that it kept as if they were constants. "
            "They have a graph: keep the tensors, not arrays alone, and record what the rule makes of them.",
            _operands_cut,
        ),
        Misconception(
            "the upstream gradient cut off",
            "Second derivatives of a single operation are right, those of a chain are not: on its way from node to "
            "node the gradient lost its graph.",
            lambda case, seen: (
                _right(seen, *_SINGLE[:4])
                and not any(_right(seen, name) for name in ("a join of unequal depth", *_SINGLE[4:]))
            ),
        ),
        Misconception(
            "summing back is not recorded",
            "Where an operand was broadcast, its gradient is summed, and there your graph ends. The sum is an "
            "operation as any other.",
            lambda case, seen: (
                _right(seen, *_SINGLE, "a join of unequal depth") and not _right(seen, "a column for all columns")
            ),
        ),
        Misconception(
            "putting back is not recorded",
            "The rule of an index puts the gradient back at its places, and there your graph ends. Record it: its own "
            "rule is the index.",
            _but("the square of an index"),
        ),
        Misconception(
            "spreading is not recorded",
            "The rule of sum spreads the gradient over what was added up, and there your graph ends. Record it: its "
            "own rule is the sum.",
            _but("the square of a sum"),
        ),
        Misconception(
            "grad fills .grad",
            "`engine.grad` wrote into `.grad` of a leaf, where the next backward() would add to it. It only returns.",
            lambda case, seen: not raised(seen["created"]) and seen["created"]["grad"] is not None,
        ),
        Misconception(
            "every pass is recorded",
            "Without create_graph=True your gradients have graphs, too. They keep everything alive that they were "
            "computed from.",
            lambda case, seen: (
                not raised(seen["plain"]) and True in seen["plain"]["flags"][:2] and _right(seen, *_SINGLE)
            ),
        ),
        Misconception(
            "freed all the same",
            "After a pass with create_graph=True the graph is freed, though the gradients' graph leads through it. "
            "Unless told otherwise, retain_graph is what create_graph is.",
            lambda case, seen: (
                raised(seen["created"], "RuntimeError")
                and not raised(seen["inner"])
                and _right(seen, "a value used twice")
            ),
        ),
        Misconception(
            "recorded into the same graph",
            "A pass with create_graph=True changed the graph that it ran over: behind the result are more nodes than "
            "before. The gradients get a graph of their own, which refers to the old one.",
            lambda case, seen: (
                not raised(seen["created"]) and seen["created"]["nodes"][0] < seen["created"]["nodes"][1]
            ),
        ),
        Misconception(
            "zeros for None",
            "For an input on which the result does not depend your engine gives zeros. None says that there is no way "
            "to it, which is more.",
            lambda case, seen: (
                not raised(seen["inner"])
                and close(seen["inner"]["unused"], torch.zeros(2, dtype=torch.float64))
                and _right(seen, *_SINGLE)
            ),
        ),
    ),
)
