"""Weights that are moved by a gradient with its graph, and what is computed with the moved ones."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

import torch

from course_utils.audit.book import Book
from course_utils.audit.cuts import Cuts
from course_utils.audit.events import Op, Pass
from course_utils.audit.lines import Spot
from course_utils.graph.alive import tensors_in

_MOVES = frozenset({"sub", "__sub__", "add", "__add__", "_foreach_sub", "_foreach_add"})
_QUIET = frozenset({"grad", "size", "dim", "numel", "__len__", "__hash__", "is_floating_point"})
_MOST = 600


@dataclass
class Line:
    """One line that takes derivatives by weights of an optimizer."""

    leaves: set[int] = field(default_factory=set)
    steps: set[int] = field(default_factory=set)  # before which weights were moved by them
    moves: set[int] = field(default_factory=set)  # numbers of the nodes that move
    open: set[int] = field(default_factory=set)  # of what was computed with moved weights, and no pass has reached
    serves: bool = False  # the moved weights went on to something other than the next inner step


class Adapted:
    """Follows derivatives by weights to the weights that they move. What is asked: does anything use those?"""

    def __init__(self, book: Book, cuts: Cuts) -> None:
        self._book, self._cuts = book, cuts
        self.lines: dict[Spot, Line] = {}
        self.slopes: dict[int, tuple[weakref.ref[torch.Tensor], Spot]] = {}
        self._moved: dict[int, tuple[weakref.ref[torch.Tensor], Spot]] = {}

    def look(self, event: Op, steps: int) -> None:
        """Take in an operation; while `slopes` is empty, only `grad` has to be shown."""
        if event.name == "grad":
            self._take(event)
        elif event.name not in _QUIET:
            self._follow(event, list(tensors_in((*event.args, *event.kwargs.values()))), steps)

    def _take(self, event: Op) -> None:
        """Note a derivative that has a graph, by weights; what it goes through is an inner step."""
        spot = event.spot
        by = list(tensors_in((event.argument(1, "inputs"),)))
        slopes = [it for it in tensors_in((event.out,)) if it.requires_grad]
        if spot is None or not slopes or not all(it.requires_grad for it in by):
            return
        leaves = self._cuts.behind(by) & self._book.held()
        if leaves:
            self.lines.setdefault(spot, Line()).leaves |= leaves
            for slope in slopes:
                _keep(self.slopes, slope, spot)

    def _follow(self, event: Op, given: list[torch.Tensor], steps: int) -> None:
        outs = [it for it in tensors_in((event.out,)) if it.requires_grad]
        slope = next((it for one in given if (it := _known(self.slopes, one)) is not None), None)
        if slope is not None and event.name in _MOVES and outs and any(self._is_weight(it) for it in given):
            self.lines[slope].steps.add(steps)
            self.lines[slope].moves.update(range(event.began, event.ended))
            for out in outs:
                _keep(self._moved, out, slope)
            return
        if slope is not None:
            for out in outs:
                _keep(self.slopes, out, slope)
        for one in given:
            moved = _known(self._moved, one)
            if moved is not None and event.ended > event.began:
                self.lines[moved].open.update(range(event.began, event.ended))
            elif moved is not None:
                self.lines[moved].serves = True

    def _is_weight(self, tensor: torch.Tensor) -> bool:
        return _known(self._moved, tensor) is not None or (tensor.is_leaf and tensor.requires_grad)

    def passed(self, event: Pass) -> None:
        """See whether a pass goes through moved weights: an inner step's own does not count."""
        for spot, line in self.lines.items():
            if line.moves and not line.serves:
                inner = not event.accumulate and event.spot == spot
                line.serves = not inner and bool((line.moves | line.open) & event.graph.numbers)
                line.open -= event.graph.numbers

    def idle(self) -> list[tuple[Spot, Line]]:
        """Return the lines whose moved weights nothing used but the next inner step."""
        return [(spot, line) for spot, line in self.lines.items() if line.steps and not line.serves and not line.open]


def _known(into: dict[int, tuple[weakref.ref[torch.Tensor], Spot]], tensor: torch.Tensor) -> Spot | None:
    known = into.get(id(tensor))
    return known[1] if known is not None and known[0]() is tensor else None


def _keep(into: dict[int, tuple[weakref.ref[torch.Tensor], Spot]], tensor: torch.Tensor, spot: Spot) -> None:
    if len(into) >= _MOST:
        for key in [key for key, (held, _) in into.items() if held() is None]:
            del into[key]
    if len(into) < _MOST:
        into[id(tensor)] = weakref.ref(tensor), spot
