"""Terms of a loss that train nothing: computed from a value that was cut off before, or read as a number."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass, number_of, terms_of
from course_utils.audit.lines import Spot
from course_utils.audit.source import no_grad_around
from course_utils.graph.alive import tensors_in
from course_utils.graph.trace import node_name

_CUTTING = frozenset({"detach", "data.__get__", "numpy"})
# A choice gives no numbers to compute with, and what is counted of it is a constant.
_CHOOSING = frozenset({"gt", "lt", "ge", "le", "eq", "ne", "argmax", "argmin", "__gt__", "__lt__", "__ge__", "__le__"})
_READING = frozenset({"item", "__float__"})
_SUMS = frozenset({"add", "__add__", "__radd__", "add_", "__iadd__", "sub", "__sub__", "__rsub__", "rsub"})

# From a loss to its terms: what only adds, scales, or changes the shape.
_TAIL = ("Add", "Sub", "Rsub", "Mul", "Div", "Neg", "Squeeze", "View", "ToCopy")
_MOST = 2000
_STEPS = 3
_CLOSE = 1e-5
_NAMES = {"data.__get__": ".data", "no_grad": "no_grad", "__float__": "float()"}


@dataclass(frozen=True)
class _Cut:
    """Where a tensor lost its graph, and how."""

    spot: Spot | None
    name: str


@dataclass
class _Read:
    """Numbers that a line read of values with a graph: their sum, and the nodes that made them."""

    total: float = 0.0
    nodes: set[int] = field(default_factory=set)


class Terms(Check):
    """Follows what is computed from cut tensors, until it is added to something that has a graph.

    A single number that is cut is left alone: it stands for a value to show, or replaces the value of another term.
    Where numbers of Python are added to a loss, one that stays in proportion to what a line reads with `.item()` is
    computed from that, unless the loss has what was read as a term as well.
    """

    codes: ClassVar = ("constant-term",)
    functions: ClassVar = frozenset({"*"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._cut: dict[int, tuple[weakref.ref[Any], _Cut]] = {}  # by the id of a tensor or an array
        self._sums: dict[int, _Cut] = {}  # by the number of the node that adds such a term
        self._times: Counter[_Cut] = Counter()
        self._read: dict[_Cut, _Read] = {}  # since the last pass, by the line that read
        self._added: dict[int, float] = {}  # numbers of Python, by the number of the node that adds one
        self._pairs: dict[_Cut, list[tuple[float, float]]] = {}  # what was read, and what was added

    def function(self, event: Op) -> None:
        out, name = event.out, event.name
        if name in _CUTTING:
            given = event.args[0] if event.args else None
            origin = self._origin(given)
            if origin is None and isinstance(given, torch.Tensor) and given.requires_grad and given.numel() > 1:
                origin = _Cut(event.spot, name)
            if origin is not None:
                self._mark(out, origin)
        elif name in _READING:
            if event.args[0].grad_fn is not None and len(self._read) < _MOST:
                cut = _Cut(event.spot, name)
                read = self._read.setdefault(cut, _Read())
                read.total += float(out)
                read.nodes.add(number_of(event.args[0].grad_fn))
        elif name in _CHOOSING:
            if isinstance(out, torch.Tensor) and any(it.grad_fn is not None for it in tensors_in(event.args)):
                spot = event.spot if out.numel() > 1 else None
                if spot is not None:
                    self._mark(out, _Cut(spot, name))
        elif isinstance(out, torch.Tensor) and (self._cut or self._read or not torch.is_grad_enabled()):
            if not out.requires_grad:
                origin = self._first(event) if out.is_floating_point() else None
                if origin is not None:
                    self._mark(out, origin)
            elif name in _SUMS and out.numel() == 1 and event.ended > event.began:
                for term in event.args[:2]:
                    if isinstance(term, float) and term:
                        self._added[event.ended - 1] = term
                    origin = self._origin(term)
                    if origin is not None and term.numel() == 1 and bool(term != 0):
                        self._sums[event.ended - 1] = origin

    def _first(self, event: Op) -> _Cut | None:
        for given in (*event.args, *event.kwargs.values()):
            found = self._origin(given)
            if found is None and isinstance(given, list | tuple):
                found = next((it for it in map(self._origin, tensors_in((given,))) if it is not None), None)
            if found is not None:
                return found
        if not torch.is_grad_enabled():
            given = [it for it in tensors_in(event.args) if it.requires_grad and it.numel() > 1]
            spot = event.spot if given else None
            if spot is not None:
                return _Cut(no_grad_around(spot) or spot, "no_grad")
        return None

    def _origin(self, thing: Any) -> _Cut | None:
        found = self._cut.get(id(thing))
        return found[1] if found is not None and found[0]() is thing else None

    def _mark(self, thing: Any, origin: _Cut) -> None:
        if len(self._cut) > _MOST:
            self._cut = {key: it for key, it in self._cut.items() if it[0]() is not None}
        if len(self._cut) <= _MOST:
            self._cut[id(thing)] = weakref.ref(thing), origin

    def pass_begins(self, event: Pass) -> None:
        sums, added, read = self._sums, self._added, self._read
        self._sums, self._added, self._read = {}, {}, {}
        if not (sums or added) or not event.accumulate:
            return
        tail = {number_of(node) for node in terms_of(event, lambda it: node_name(it).startswith(_TAIL))}
        self._times.update(sums[number] for number in tail & sums.keys())
        for node, term in added.items() if read else ():
            for cut, numbers in read.items() if node in tail else ():
                if not tail & numbers.nodes:
                    self._pairs.setdefault(cut, []).append((numbers.total, term))

    def found(self) -> Iterator[Found]:
        for cut, pairs in self._pairs.items():
            if len(pairs) >= _STEPS and _is_in_proportion(pairs):
                self._times[cut] += len(pairs)
        for origin, times in self._times.items():
            if times >= _STEPS:
                name = _NAMES.get(origin.name) or (
                    "comparison" if origin.name in _CHOOSING and "arg" not in origin.name else f"{origin.name}()"
                )
                yield self.say(
                    "constant-term",
                    origin.spot,
                    f"a term of the loss has no graph behind this {name}: it trains nothing",
                    "What is computed from here is added to the loss as a number. It changes the loss that you see, "
                    f"and no gradient: in {times} passes the training was the same as without it.",
                    "compute the term from the values before the choice: probabilities in place of decisions"
                    if origin.name in _CHOOSING
                    else f"leave out {name} on the way to the loss; if the term is only to be shown, do not add it",
                    level="likely",
                    certain=False,
                    times=times,
                )


def _is_in_proportion(pairs: list[tuple[float, float]]) -> bool:
    """Say whether one number follows another that changes: their quotient stays."""
    if len({round(read, 6) for read, _ in pairs}) < len(pairs) / 2 or not all(read for read, _ in pairs):
        return False
    quotients = [added / read for read, added in pairs]
    return max(quotients) - min(quotients) <= _CLOSE * max(map(abs, quotients))
