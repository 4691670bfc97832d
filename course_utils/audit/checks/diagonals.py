"""Second derivatives taken of summed first ones: each holds the mixed derivatives, too."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, before, derivative_of, node_behind
from course_utils.audit.followed import Followed
from course_utils.audit.lines import Spot, spots
from course_utils.audit.source import function_around, text_at
from course_utils.graph.alive import tensors_in
from course_utils.graph.trace import LiveNode, node_name

_MIXES = frozenset({"linear", "matmul", "__matmul__", "mm"})
_COLUMNS = frozenset({"__getitem__", "select", "chunk", "split", "unbind", "tensor_split"})
_PARTED = frozenset({"chunk", "split", "tensor_split"})  # whose axis comes third
_SCALES = ("Mul", "Div", "Add", "Sub", "Neg", "Clone", "ToCopy")
_TRACES = re.compile(r"diverg|\bdiv\b|trace|lapl|hess|diag|score_match|hyvarinen", re.IGNORECASE)
_DEEP, _MOST, _TIMES = 4, 128, 2


class _Sum(NamedTuple):
    """A sum of a first derivative by an input, or of something else: 0 for the input's id."""

    by: int
    shape: tuple[int, ...]  # of what was summed


class _Second(NamedTuple):
    """A derivative of all entries of a derivative, or of a field, and where it was asked for."""

    again: bool  # of a derivative, and not of a field
    asked: tuple[Spot, ...]


class Diagonals(Check):
    """Derivatives of first derivatives by one input, and whether they are used as if each were of its own entry."""

    codes: ClassVar = ("mixed-derivatives",)
    functions: ClassVar = _MIXES | _COLUMNS | {"grad", "sum"}

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._mixed: Followed[bool] = Followed(_MOST)  # inputs whose entries a layer mixes
        self._first: Followed[int] = Followed(_MOST)  # first derivatives, with the id of the input
        self._sums: Followed[_Sum] = Followed(_MOST)
        self._second: Followed[_Second] = Followed(_MOST)
        self._used: Counter[tuple[Spot, bool]] = Counter()

    def function(self, event: Op) -> None:
        given = event.args[0] if event.args else event.kwargs.get("input")
        if event.name == "grad":
            self._taken(event)
        elif not isinstance(given, torch.Tensor) or not given.requires_grad:
            return
        elif event.name in _MIXES:
            for tensor in _inputs(given):
                self._mixed.keep(tensor, True)
        else:
            self._look(event, given)

    def _look(self, event: Op, given: torch.Tensor) -> None:
        second = self._second.of(given)
        if second is not None:
            text = f"{text_at(event.spot)} {_name(event.spot)}" if event.spot is not None else ""
            if _as_diagonal(event, given) and (second.again or (event.name == "sum" and _TRACES.search(text))):
                self._use(second, event.spot)
        elif event.name == "sum" and isinstance(event.out, torch.Tensor):
            dim = event.argument(1, "dim")
            if given.dim() and (dim is None or dim in (-1, given.dim() - 1)):
                self._sums.keep(event.out, _Sum(self._first.of(given) or 0, tuple(given.shape)))

    def _taken(self, event: Op) -> None:
        taken = derivative_of(event)
        if taken is None or not _is_ones(event.argument(2, "grad_outputs")):
            return
        out, point, slope = taken
        if isinstance(point, torch.nn.Parameter) or not point.dim() or point.shape[-1] < 2:
            return
        total = self._sums.of(out)
        again = id(point) in (self._first.of(out), total.by if total is not None else 0)
        summed = total.shape if total is not None and not total.by else ()
        field = not again and tuple(point.shape) in (tuple(out.shape), summed)
        if (again or field) and self._mixed.of(point):
            self._second.keep(slope, _Second(again, spots(4)))
        elif not field:
            self._first.keep(slope, id(point))

    def _use(self, second: _Second, used: Spot | None) -> None:
        """Count a use at the line that asked for the derivative, in the function that uses it."""
        if used is None:
            return
        scope = function_around(used)
        asked = next((it for it in second.asked if it.file == used.file and function_around(it) is scope), used)
        self._used[asked, second.again] += 1

    def found(self) -> Iterator[Found]:
        for (spot, again), times in self._used.items():
            if times < _TIMES:
                continue
            yield self.say(
                "mixed-derivatives",
                spot,
                "each second derivative is one of the sum of all first ones: the mixed derivatives are in it, too"
                if again
                else "the divergence is taken of the sum of all entries: their derivatives by the other inputs are in "
                "it, too",
                "A gradient of a sum adds up the gradients of its terms: entry j is the derivative by input j of all "
                "entries, and not of entry j alone. A layer mixes the inputs, so those others are not zero.",
                "sum(torch.autograd.grad(du[:, j].sum(), x, create_graph=True)[0][:, j] for j in range(x.shape[1]))",
                certain=False,
                times=times,
            )


def _inputs(given: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield what a layer is given, and the leaf that this is computed from entry by entry."""
    if not isinstance(given, torch.nn.Parameter) and given.dim() and given.shape[-1] > 1:
        yield given
        node: LiveNode | None = node_behind(given)
        for _ in range(_DEEP):
            if node is None or not node_name(node).startswith(_SCALES):
                break
            node = before(node) or before(node, 1)
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, torch.Tensor) and not isinstance(leaf, torch.nn.Parameter) and leaf.shape == given.shape:
            yield leaf


def _is_ones(seeds: Any) -> bool:
    """Say whether each output counts once: no gradients are given for them, or ones."""
    given = list(tensors_in((seeds,)))
    return seeds is None or (len(given) == 1 and bool((given[0].detach() == 1).all()))


def _as_diagonal(event: Op, given: torch.Tensor) -> bool:
    """Say whether a function sums along the last axis, or takes entries of it apart."""
    last = given.dim() - 1
    if event.name == "__getitem__":
        index = event.args[1]
        place = index[-1] if isinstance(index, tuple) and (Ellipsis in index or len(index) == last + 1) else None
        one = isinstance(place, slice) and isinstance(place.start, int) and place.stop == place.start + 1
        return (isinstance(place, int) and not isinstance(place, bool)) or one
    dim = event.argument(2 if event.name in _PARTED else 1, "dim", None if event.name == "sum" else 0)
    dim = dim[0] if isinstance(dim, tuple | list) and len(dim) == 1 else dim
    return isinstance(dim, int) and dim % given.dim() == last


def _name(spot: Spot) -> str:
    """Return the name of the function around a line."""
    return str(getattr(function_around(spot), "name", ""))
