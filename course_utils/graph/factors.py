"""By what a node multiplied the gradient on its way to one input: the local factor of the chain rule, as observed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from course_utils.graph.digits import flat, listed, short
from course_utils.graph.events import Event
from course_utils.graph.saved import SavedTensor
from course_utils.graph.trace import Graph

# More factors than this are not told within a line.
_TOLD = 4
# How far a factor known by its rule may lie from the one observed, relative to it. Half precision needs so much.
_NEAR = 2e-3

# Operations that treat each element alone. Only of those does a quotient of two tensors say by what was multiplied.
_BY_ELEMENT = frozenset(
    [
        "Abs",
        "Add",
        "Addcmul",
        "Clone",
        "Cos",
        "Div",
        "Exp",
        "Gelu",
        "Log",
        "Log1P",
        "Mul",
        "Neg",
        "Pow",
        "Reciprocal",
        "Relu",
        "Rsqrt",
        "Rsub",
        "Sigmoid",
        "Silu",
        "Sin",
        "Softplus",
        "Sqrt",
        "Sub",
        "Tanh",
        "ToCopy",
    ]
)


class _Rule(NamedTuple):
    """A factor that one saved tensor gives: which, how that is written, and what it is for one number of it."""

    saved: str
    text: str
    of: Callable[[float], float]


# By the operation, and the number of its input. Source: derivatives.yaml of PyTorch.
_RULES: Mapping[tuple[str, int], _Rule] = {
    ("Mul", 0): _Rule("other", "\u00d7 {}", lambda other: other),
    ("Mul", 1): _Rule("self", "\u00d7 {}", lambda factor: factor),
    ("Div", 0): _Rule("other", "\u00d7 1/{}", lambda other: 1 / other),
    ("Exp", 0): _Rule("result", "\u00d7 {}", lambda result: result),
    ("Log", 0): _Rule("self", "\u00d7 1/{}", lambda number: 1 / number),
    ("Sin", 0): _Rule("self", "\u00d7 cos {}", math.cos),
    ("Cos", 0): _Rule("self", "\u00d7 \u2212sin {}", lambda number: -math.sin(number)),
    ("Sqrt", 0): _Rule("result", "\u00d7 1/(2\u00b7{})", lambda result: 1 / (2 * result)),
    ("Tanh", 0): _Rule("result", "\u00d7 1 \u2212 {}\u00b2", lambda result: 1 - result**2),
    ("Sigmoid", 0): _Rule("result", "\u00d7 {0}(1 \u2212 {0})", lambda result: result * (1 - result)),
}


def factor(
    graph: Graph, saved: Sequence[SavedTensor], exponents: Mapping[int, float], event: Event, position: int
) -> str:
    """Return by what an event's node multiplied what it sent to input `position`, or "" where that cannot be known.

    The number is what was sent, divided by what was received. It is called by a name where PyTorch's rule for the
    operation says that the factor is made of one saved tensor, that tensor was named, and its numbers agree with what
    was observed: "\u00d7 y = 3", else "\u00d7 3" or "\u00d7 [2, 4]". It cannot be known where the operation mixes
    elements, where numbers were not recorded, and where a zero, an infinity or NaN took part and there is no name. An
    infinite factor is told by its rule, as nothing can be divided to observe it: "\u00d7 y = inf".
    """
    received, sent = event.received, event.sent[position]
    if len(received) != 1 or received[0] is None or sent is None or received[0].values is None or sent.values is None:
        return ""
    came, went = flat(received[0].values), flat(sent.values)
    kind = re.sub(r"Backward\d*$", "", graph.nodes[event.node].name)
    if len(came) == 1:
        came *= len(went)  # one number depends on each input by one factor, whatever the operation is
    elif kind not in _BY_ELEMENT or received[0].shape != sent.shape:
        return ""
    if not all(isinstance(one, float) for one in (*came, *went)):
        return ""
    name = _named(
        kind, [entry for entry in saved if entry.node == event.node], exponents, event.node, position, came, went
    )
    if not came or not all(came) or not all(map(math.isfinite, (*came, *went))):
        return name
    observed = [after / before for before, after in zip(came, went, strict=True)]
    alike = all(_near(one, observed[0]) for one in observed)
    if alike or (not name and len(observed) <= _TOLD):
        numbers = short(observed[0]) if alike else listed(observed)
        return f"{name} = {numbers}" if name else f"\u00d7 {numbers}"
    return name


def _named(
    kind: str,
    kept: Sequence[SavedTensor],
    exponents: Mapping[int, float],
    node: int,
    position: int,
    came: Sequence[float],
    went: Sequence[float],
) -> str:
    """Return the factor by its name, where rule, name and observed numbers agree."""
    rule = _power(exponents[node]) if kind == "Pow" and exponents.get(node, 1) != 1 else _RULES.get((kind, position))
    if rule is None:
        return ""
    for entry in kept:
        if entry.name != rule.saved or entry.value is None or not entry.label or entry.label.startswith("view of"):
            continue
        numbers = flat(entry.value.numbers)
        numbers = numbers * len(came) if len(numbers) == 1 else numbers
        try:
            factors = [rule.of(float(number)) for number in numbers]
            expected = [before * each for before, each in zip(came, factors, strict=True)]
        except (TypeError, ValueError, ArithmeticError):  # a complex number, other sizes, 1/0, or too large a number
            return ""
        if all(_near(one, other) for one, other in zip(expected, went, strict=True)):
            name = rule.text.format(entry.label)
            endless = len(set(factors)) == 1 and math.isinf(factors[0])
            return f"{name} = {short(factors[0])}" if endless else name
    return ""


def _power(exponent: float) -> _Rule:
    """Return the rule of a power: exponent times self to the power of exponent - 1."""
    left = exponent - 1
    raised = "" if left == 1 else "\u00b2" if left == 2 else f"^{short(left)}"
    return _Rule("self", f"\u00d7 {short(exponent)}\u00b7{{}}{raised}", lambda number: exponent * number**left)


def _near(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_NEAR, abs_tol=1e-12) or (math.isnan(one) and math.isnan(other))
