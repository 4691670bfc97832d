"""A straight-through estimator written the wrong way round: the value that goes on is not the quantised one."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass
from course_utils.audit.lines import Spot
from course_utils.graph.alive import tensors_in

_Dress: TypeAlias = Literal["reversed", "doubled"]

# What these give has few values: levels, rows of a codebook, zeros and ones.
_STEPS = frozenset({"round", "sign", "sgn", "floor", "ceil", "trunc", "heaviside", "one_hot", "embedding", "scatter_"})
_CHOOSING = frozenset({"__getitem__", "index_select", "gather"})
_CHOICES = frozenset({"gt", "lt", "ge", "le", "eq", "argmax", "argmin", "__gt__", "__lt__", "__ge__", "__le__"})
# What is made of such values by these has few values as well.
_SHAPES = frozenset(
    {
        *(
            "view",
            "reshape",
            "permute",
            "transpose",
            "unsqueeze",
            "squeeze",
            "contiguous",
            "view_as",
            "clone",
            "detach",
        ),
        *("float", "to", "type_as", "__mul__", "mul", "__truediv__", "div", "__matmul__", "matmul", "mm", "movedim"),
    }
)
_SUBTRACTIONS, _SUMS = frozenset({"sub", "__sub__"}), frozenset({"add", "__add__", "__radd__"})
_CUTS = frozenset({"detach", "data.__get__"})
_MOST = 64
_TIMES = 2


@dataclass(frozen=True)
class _Difference:
    """One that learns minus another of few values: the other's numbers, and whether the graph was cut off."""

    one: weakref.ref[torch.Tensor]
    other: torch.Tensor
    cut: bool


class Straight(Check):
    """Sums of a tensor and of a difference without a graph, in which the tensor itself stands."""

    codes: ClassVar = ("straight-through-reversed",)
    functions: ClassVar = _STEPS | _CHOOSING | _CHOICES | _SHAPES | _SUBTRACTIONS | _SUMS | _CUTS

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._few: OrderedDict[int, weakref.ref[torch.Tensor]] = OrderedDict()
        self._differences: OrderedDict[int, tuple[weakref.ref[torch.Tensor], _Difference]] = OrderedDict()
        self._wrong: dict[tuple[Spot, _Dress], int] = {}

    def function(self, event: Op) -> None:
        if not isinstance(event.out, torch.Tensor):
            return
        name = event.name
        if self._few:
            if name in _SUBTRACTIONS:
                self._subtract(event)
            elif name in _CUTS:
                self._cut(event)
            elif name in _SUMS and self._differences:
                self._add(event)
        if (
            name in _STEPS
            or name in _CHOICES
            or self._chooses(event)
            or (name in _SHAPES and self._few and any(map(self._is_few, event.args[:2])))
        ):
            self._remember(event.out)

    def _chooses(self, event: Op) -> bool:
        """Say whether rows or entries are taken by whole numbers: a codebook is asked."""
        if event.name not in _CHOOSING:
            return False
        index = [it for it in tensors_in(event.args[1:]) if not it.is_floating_point() and it.dtype != torch.bool]
        return bool(index) and event.out.is_floating_point()

    def _remember(self, tensor: torch.Tensor) -> None:
        self._few[id(tensor)] = weakref.ref(tensor)
        if len(self._few) > _MOST:
            self._few.popitem(last=False)

    def _is_few(self, thing: Any) -> bool:
        known = self._few.get(id(thing))
        return known is not None and known() is thing

    def _subtract(self, event: Op) -> None:
        one, other = (*event.args[:2], None, None)[:2]
        if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor) or event.kwargs:
            return
        if one.shape == other.shape and one.requires_grad and self._is_few(other) and not self._is_few(one):
            self._keep(event.out, _Difference(weakref.ref(one), other.detach(), not event.out.requires_grad))

    def _cut(self, event: Op) -> None:
        known = self._difference(event.args[0])
        if known is not None:
            self._keep(event.out, _Difference(known.one, known.other, True))

    def _keep(self, tensor: torch.Tensor, difference: _Difference) -> None:
        self._differences[id(tensor)] = weakref.ref(tensor), difference
        if len(self._differences) > _MOST:
            self._differences.popitem(last=False)

    def _difference(self, thing: Any) -> _Difference | None:
        known = self._differences.get(id(thing))
        return known[1] if known is not None and known[0]() is thing else None

    def _add(self, event: Op) -> None:
        for one, other in (event.args[:2], event.args[1::-1]):
            found = self._difference(other)
            if found is not None and found.cut and isinstance(one, torch.Tensor):
                dress = self._dress(one, found)
                spot = event.spot if dress is not None else None
                if dress is not None and spot is not None:
                    self._wrong[spot, dress] = self._wrong.get((spot, dress), 0) + 1
                return

    def _dress(self, added: torch.Tensor, found: _Difference) -> _Dress | None:
        """Say what is wrong with a tensor and a difference that are added: q + (x - q), or x + (x - q)."""
        if added is found.one():
            return "doubled"
        same = added.shape == found.other.shape and bool(torch.equal(added.detach(), found.other))
        return "reversed" if same else None

    def pass_begins(self, event: Pass) -> None:
        self._differences.clear()

    def found(self) -> Iterator[Found]:
        for (spot, dress), times in self._wrong.items():
            if times < _TIMES:
                continue
            first = (
                "the straight-through line is the wrong way round: the value that goes on is not quantised"
                if dress == "reversed"
                else "the straight-through line has its difference the wrong way round: it gives 2 * x - q"
            )
            second = (
                "q + (x - q).detach() has the value x, and its gradient goes to q. What follows never sees the "
                "quantised value, and what came before x gets no gradient from it."
                if dress == "reversed"
                else "x + (x - q).detach() moves away from the quantised value q, as far as x is from it."
            )
            yield self.say(
                "straight-through-reversed",
                spot,
                first,
                second,
                "x + (q - x).detach()  # the value of q, and the gradient goes to x",
                times=times,
            )
