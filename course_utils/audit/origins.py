"""Where numbers come from: which rows they were taken from by chance, and which noise is in them."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from course_utils.audit.events import Op
from course_utils.audit.lines import Spot, here
from course_utils.audit.loaders import fetching, loading
from course_utils.graph.alive import tensors_in

_ROWS = frozenset({"randperm", "randint"})
_NOISE = frozenset({"randn", "randn_like", "normal", "normal_"})
_TAKES = frozenset({"__getitem__", "index_select"})
_COLLATES = frozenset({"stack", "tensor", "as_tensor"})
_LEAVES = frozenset({"tolist", "numpy", "item", "__iter__", "__array__"})
_ADDS = frozenset({"add", "__add__", "__radd__", "sub", "__sub__", "__rsub__", "add_", "__iadd__", "lerp"})
# What is made of noise by these, with something smaller or with numbers, is noise still.
_SCALES = frozenset(
    {
        *("mul", "__mul__", "__rmul__", "div", "__truediv__", "neg", "__neg__", "clone", "detach", "to", "float"),
        *("view", "reshape", "flatten", "unsqueeze", "squeeze", "transpose", "permute", "contiguous", "expand"),
        *("__getitem__", "split", "chunk"),
    }
)
_MOST = 4096
_PEEKED = 32


@dataclass(frozen=True)
class Marks:
    """What a tensor was made of. `drawn` are draws of row numbers that it holds itself, and has not used yet."""

    rows: frozenset[int] = frozenset()
    noise: frozenset[int] = frozenset()
    drawn: frozenset[int] = frozenset()
    pure: bool = False  # it is noise, and nothing else


@dataclass
class Draw:
    """One draw: of an order or of rows, or of noise."""

    spot: Spot | None
    shape: tuple[int, ...] = ()
    whole: bool = False  # an order of all rows
    used: dict[int, Spot | None] = field(default_factory=dict)  # by the length of what it was applied to
    left: bool = False  # it left PyTorch, and was perhaps used there
    added: bool = False  # to something that is no noise


NOTHING = Marks()


class Origins:
    """The marks of living tensors. Told of every function, it hands marks on from what is given to what comes out."""

    def __init__(self) -> None:
        self.draws: list[Draw] = [Draw(None)]
        self._known: OrderedDict[int, tuple[weakref.ref[torch.Tensor], Marks]] = OrderedDict()
        self._same: dict[tuple[int, ...], int] = {}  # orders that were drawn, by some of their numbers
        self._loaders: dict[int, int] = {}  # the order of a loader, by its iterator
        # Draws of which features of this batch left PyTorch: of what comes back nothing is known.
        self.abroad: set[int] = set()
        self._batch: tuple[Any, ...] = ()

    def of(self, thing: Any) -> Marks:
        """Return the marks of a tensor; none for anything else."""
        known = self._known.get(id(thing))
        return known[1] if known is not None and known[0]() is thing else NOTHING

    def follow(self, op: Op) -> None:
        """Hand marks on through one function."""
        name, out = op.name, op.out
        if name in _ROWS:
            self._rows(out, name)
        elif name in _NOISE and isinstance(out, torch.Tensor) and not out.requires_grad:
            given = self._union(op) if name == "normal" else NOTHING
            drawn = frozenset({self._draw(Draw(op.spot, tuple(out.shape)))})
            self._set(out, Marks(given.rows, given.noise | drawn, given.drawn, given is NOTHING))
        elif name in _COLLATES and self._loaders and (loader := fetching()) is not None:
            number = self._loaders.get(id(loader))
            if number is not None:
                given = self._union(op)
                self._set(out, Marks(given.rows | {number}, given.noise))
        elif self._known:
            self._hand_on(op)

    def _rows(self, out: Any, name: str) -> None:
        if not isinstance(out, torch.Tensor) or not out.numel():
            return
        flat = out.flatten()
        key = (*out.shape, *flat[:: max(1, flat.numel() // _PEEKED)][:_PEEKED].tolist())
        number = self._same.get(key)
        if number is None:
            number = self._same[key] = self._draw(Draw(here(), tuple(out.shape), name == "randperm"))
        loader = loading()[0]
        if loader is not None:
            self.draws[number].used[len(loader._dataset)] = here()
            self._loaders[id(loader)] = number
        else:
            self._set(out, Marks(drawn=frozenset({number})))

    def _draw(self, draw: Draw) -> int:
        self.draws.append(draw)
        return len(self.draws) - 1

    def _union(self, op: Op) -> Marks:
        found = [self.of(it) for it in tensors_in((*op.args, *op.kwargs.values()))]
        found = [it for it in found if it is not NOTHING]
        if not found:
            return NOTHING
        if len(found) == 1:
            return found[0]
        return Marks(
            frozenset().union(*(it.rows for it in found)),
            frozenset().union(*(it.noise for it in found)),
            frozenset().union(*(it.drawn for it in found)),
        )

    def _hand_on(self, op: Op) -> None:
        given = self._union(op)
        if given is NOTHING:
            return
        first = op.args[0] if op.args else None
        if op.name in _LEAVES:
            for number in given.drawn:
                self.draws[number].left = True
            if isinstance(first, torch.Tensor) and first.dim() and first.is_floating_point():
                self.abroad |= given.rows
            return
        if op.name in _TAKES and isinstance(first, torch.Tensor):
            given = self._taken(op, first, given)
        outs = list(tensors_in((op.out,)))
        if op.name == "__setitem__" and isinstance(first, torch.Tensor):
            outs = [first]
        pure = self._is_pure(op, given, outs)
        if op.name in _ADDS:
            self._add(op)
        marks = Marks(given.rows, given.noise, given.drawn, pure)
        for out in outs:
            self._set(out, marks)

    def _taken(self, op: Op, first: torch.Tensor, given: Marks) -> Marks:
        """Rows that were taken by a draw: of data or of predictions, and not of a table that learns."""
        index = op.args[1] if op.name == "__getitem__" and len(op.args) > 1 else op.argument(2, "index")
        drawn = self.of(index).drawn
        own = self.of(first)
        if not drawn:
            return given
        if first.dim() == 0 or (first.requires_grad and first.is_leaf):
            return own
        if first.requires_grad:  # predictions for all, of which a loss takes some
            return Marks(own.rows | drawn, own.noise, own.drawn)
        batch = index.data_ptr(), index.shape
        if batch != self._batch:
            self._batch = batch
            self.abroad.clear()
        for number in drawn:
            self.draws[number].used[first.shape[0]] = op.spot
        return Marks(own.rows | drawn, own.noise, own.drawn, own.pure)

    def _is_pure(self, op: Op, given: Marks, outs: list[torch.Tensor]) -> bool:
        if op.name not in _SCALES or not given.noise or not outs:
            return False
        tensors = [it for it in tensors_in((*op.args, *op.kwargs.values())) if it.is_floating_point()]
        rest = [it for it in tensors if not self.of(it).pure]
        return len(tensors) - len(rest) == 1 and all(it.numel() < outs[0].numel() for it in rest)

    def _add(self, op: Op) -> None:
        """Note noise that is added to something else."""
        tensors = [it for it in tensors_in(op.args) if it.dim()]
        for one in tensors:
            marks = self.of(one)
            if marks.pure and any(other is not one and not marks.noise & self.of(other).noise for other in tensors):
                for number in marks.noise:
                    self.draws[number].added = True

    def _set(self, tensor: Any, marks: Marks) -> None:
        if isinstance(tensor, torch.Tensor):
            self._known[id(tensor)] = weakref.ref(tensor), marks
            if len(self._known) > _MOST:
                self._known.popitem(last=False)


def spots_of(draws: Iterable[Draw], rows: int) -> list[Spot]:
    """Return the lines at which draws were applied to something of so many rows."""
    return [spot for spot in (it.used.get(rows) or it.spot for it in draws) if spot is not None]
