"""Learned weights of losses with nothing against their fall: each step makes the loss smaller by weighing it less."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass, before, number_of, saved_value, terms_of
from course_utils.audit.lines import Spot
from course_utils.graph.trace import LiveNode, node_name

_FEW = 16  # numbers of a weight, and the nodes that make it
_PASSES, _FALLEN, _STEADY = 8, 0.97, 0.9
_TAIL = ("Add", "Sum", "Mean", "Stack", "Cat", "Select", "Unbind", "View", "Squeeze", "Unsqueeze", "Mul", "Div")
# From parameters to a weight. Shares that softmax makes are no less in sum, whatever becomes of one.
_POINTWISE = (
    *("Exp", "Neg", "Pow", "Mul", "Div", "Add", "Sub", "Rsub", "Reciprocal", "Sqrt", "Softplus", "Sigmoid", "Clamp"),
    *("Relu", "Abs", "Select", "Unbind", "View", "Squeeze", "Unsqueeze", "Stack", "Slice", "Expand"),
)


@dataclass
class _Weight:
    """What a product took a learned weight for, pass by pass."""

    values: list[float] = field(default_factory=list)
    held: bool = False  # its parameter has a term of its own


class Escaping(Check):
    """Products of a loss and a number that only parameters make, by the line of the product."""

    codes: ClassVar = ("weight-escapes",)
    functions: ClassVar = frozenset({"mul", "__mul__", "__rmul__", "div", "__truediv__", "true_divide"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._lines: dict[int, Spot] = {}  # of small products with two sides, by node
        self._weights: dict[Spot, _Weight] = {}

    def function(self, event: Op) -> None:
        out = event.out
        if isinstance(out, torch.Tensor) and out.numel() <= _FEW and out.grad_fn is not None:
            spot = event.spot if all(before(out.grad_fn, at) is not None for at in (0, 1)) else None
            if spot is not None:
                self._lines[number_of(out.grad_fn)] = spot

    def pass_begins(self, event: Pass) -> None:
        lines, self._lines = self._lines, {}
        if not lines or not event.accumulate or event.create:
            return
        weighed: dict[LiveNode, tuple[int, frozenset[int]]] = {}
        for node in (terms := terms_of(event, lambda it: _leads_on(it, lines), 60)):
            side = _weight_side(node) if number_of(node) in lines else None
            if side is not None:
                weighed[node] = side
        factors = {before(node, at) for node, (at, _) in weighed.items()}
        own = {key for node in terms if node not in weighed and node not in factors for key in _only(node) or ()}
        totals: dict[Spot, float] = {}
        for node, (at, _) in weighed.items():
            value = saved_value(node, ("self", "other")[at])
            if value is not None and bool((value > 0).all()):
                mean = float(value.float().mean())
                spot = lines[number_of(node)]
                totals[spot] = totals.get(spot, 0.0) + (1 / mean if node_name(node).startswith("Div") else mean)
        for spot, total in totals.items():
            weight = self._weights.setdefault(spot, _Weight())
            weight.values.append(total)
            keys = {key for node, (_, its) in weighed.items() if lines[number_of(node)] == spot for key in its}
            weight.held |= bool(keys & own)

    def found(self) -> Iterator[Found]:
        moving = {spot: it for spot, it in self._weights.items() if len(it.values) >= _PASSES}
        for spot, weight in moving.items() if all(map(_falls, moving.values())) else ():
            if not weight.held:
                yield self.say(
                    "weight-escapes",
                    spot,
                    f"the learned weight of this loss fell from {weight.values[0]:.3g} to {weight.values[-1]:.3g}: "
                    "nothing in the loss speaks against a smaller one",
                    "A positive loss becomes smaller when its factor does, so each step lowers the factor, and the "
                    "rest of the network is trained with less and less of it.",
                    "loss = torch.exp(-s) * task_loss + s  # the second term rises as the weight falls",
                    certain=False,
                    times=len(weight.values),
                )


def _falls(weight: _Weight) -> bool:
    pairs = list(zip(weight.values, weight.values[1:], strict=False))
    return weight.values[-1] < _FALLEN * weight.values[0] and sum(a > b for a, b in pairs) >= _STEADY * len(pairs)


def _leads_on(node: LiveNode, lines: dict[int, Spot]) -> bool:
    return node_name(node).startswith(_TAIL) and (number_of(node) not in lines or _weight_side(node) is None)


def _weight_side(node: LiveNode) -> tuple[int, frozenset[int]] | None:
    """Return which input of a product only parameters make, and which they are; None unless it is one of two."""
    sides = [_only(side) if (side := before(node, at)) is not None else frozenset[int]() for at in (0, 1)]
    if node_name(node).startswith("Div"):
        return (1, sides[1]) if sides[1] and sides[0] is None else None
    for at in (0, 1):
        if sides[at] and sides[1 - at] is None:
            return at, sides[at] or frozenset()
    return None


def _only(node: LiveNode) -> frozenset[int] | None:
    """Return the small leaves that a node is made of, None where there are many nodes, or more than numbers go in."""
    queue, leaves = [node], set()
    for at in queue:
        variable = getattr(at, "variable", None)
        if isinstance(variable, torch.Tensor):
            if variable.numel() > _FEW:
                return None
            leaves.add(id(variable))
        elif len(queue) > _FEW or not node_name(at).startswith(_POINTWISE):
            return None
        queue += [to for to, _ in at.next_functions if to is not None and to not in queue]
    return frozenset(leaves)
