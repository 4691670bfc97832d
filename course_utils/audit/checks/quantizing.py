"""Nearest codes of a codebook that go on in the place of what they stand for, with no way back to it."""

from __future__ import annotations

import ast
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from typing import ClassVar

import torch

from course_utils.audit.book import listed
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass, PassGraph, Step, node_behind, number_of
from course_utils.audit.lines import Spot
from course_utils.audit.source import bound_at, function_around, taken_apart
from course_utils.graph.alive import tensors_in
from course_utils.graph.trace import LiveNode, walk

_CHOICES = frozenset({"argmin", "argmax", "min", "max", "topk", "sort", "argsort"})
# What leaves a choice the same choice, and a code the same code.
_DRESSES = frozenset(
    {
        *("view", "reshape", "flatten", "squeeze", "unsqueeze", "squeeze_", "unsqueeze_", "__getitem__", "select"),
        *("permute", "transpose", "t", "movedim", "contiguous", "clone", "detach", "data.__get__", "expand", "repeat"),
        *("long", "to", "type", "float", "type_as", "view_as", "one_hot", "scatter", "scatter_"),
    }
)
_BY_INDEX = frozenset({"__getitem__", "index_select", "gather"})
_BY_ONES = frozenset({"matmul", "__matmul__", "mm"})
_COMPARING = frozenset({"sub", "__sub__", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"})
_MOST = 200
_ROWS = 32
_TIMES = 3


@dataclass
class _Codes:
    """What one line takes from a codebook: what it stands for, and what is computed with it."""

    learning: set[int] = field(default_factory=set)  # leaves behind what the codes stand for
    before: set[int] = field(default_factory=set)  # numbers of the nodes behind it, since the last step
    onward: set[int] = field(default_factory=set)  # of operations of the codes with other parameters
    lost: int = 0  # passes


@dataclass(frozen=True)
class _Taken:
    """A code, or what was computed from it."""

    spot: Spot
    book: torch.Tensor  # as it was then
    is_code: bool


class Quantizing(Check):
    """Follows codes from the choice of the nearest one to a comparison with it, and to the layers after it."""

    codes: ClassVar = ("straight-through-missing",)
    functions: ClassVar = frozenset({"*"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._known: OrderedDict[int, tuple[weakref.ref[torch.Tensor], _Taken | None]] = OrderedDict()  # None: a choice
        self._lines: dict[Spot, _Codes] = {}
        self._own: set[int] = set()  # leaves of codebooks
        self._compared: set[int] = set()  # numbers of the nodes that compare, since the last step
        self._reached: set[int] = set()  # leaves that a pass reached by another way

    def function(self, event: Op) -> None:
        if event.name in _CHOICES:
            for index in tensors_in((event.out,)):
                if not index.is_floating_point():
                    self._remember(index, None)
        elif self._known and isinstance(event.out, torch.Tensor):
            given = list(tensors_in((*event.args, *event.kwargs.values())))
            known = [it for it in given if self._knows(it)]
            taken = next((it for one in known if (it := self._known[id(one)][1]) is not None), None)
            if taken is not None:
                self._follow(event, taken, given)
            elif known:
                self._take(event)

    def _remember(self, tensor: torch.Tensor, taken: _Taken | None) -> None:
        self._known[id(tensor)] = weakref.ref(tensor), taken
        if len(self._known) > _MOST:
            self._known.popitem(last=False)

    def _knows(self, tensor: torch.Tensor) -> bool:
        known = self._known.get(id(tensor))
        return known is not None and known[0]() is tensor

    def _take(self, event: Op) -> None:
        """Follow a choice to the codes that are taken by it."""
        book = None
        if event.name == "embedding":
            book = event.argument(1, "weight")
        elif event.name in _BY_INDEX:
            book = event.argument(0, "input")
        elif event.name in _BY_ONES and self._knows(event.args[0]) and bool((event.args[0].sum(-1) == 1).all()):
            book = event.argument(1, "other")
        spot = event.spot
        if isinstance(book, torch.Tensor) and book.is_floating_point() and book.dim() == 2 and spot is not None:
            self._own |= self.recorder.cuts.behind([book]) if book.requires_grad else frozenset()
            self._remember(event.out, _Taken(spot, book.detach().clone(), True))
        elif event.name in _DRESSES:
            self._remember(event.out, None)

    def _follow(self, event: Op, taken: _Taken, given: list[torch.Tensor]) -> None:
        codes = self._lines.setdefault(taken.spot, _Codes())
        if event.name in _COMPARING and taken.is_code:
            self._compare(event, taken, codes)
        elif any(self._is_parameter(it) for it in given):
            codes.onward.update(range(event.began, event.ended))
            return
        if event.out.dim():
            self._remember(event.out, _Taken(taken.spot, taken.book, taken.is_code and event.name in _DRESSES))

    def _is_parameter(self, tensor: torch.Tensor) -> bool:
        return tensor.is_leaf and tensor.requires_grad and self.book.slot(tensor).key not in self._own

    def _compare(self, event: Op, taken: _Taken, codes: _Codes) -> None:
        """Note a comparison of codes with what they are the nearest to, if that learns by it."""
        sides = [it for it in tensors_in((*event.args[:2], *event.kwargs.values())) if it.shape == event.args[0].shape]
        code = next((it for it in sides if self._knows(it)), None)
        stands = next((it for it in sides if it.requires_grad and not self._knows(it)), None)
        if code is None or stands is None or not _is_nearest(stands.detach(), code.detach(), taken.book):
            return
        self._compared.update(range(event.began, event.ended))
        codes.learning |= self.recorder.cuts.behind([stands])
        if stands.grad_fn is not None:
            codes.before |= PassGraph(walk([stands.grad_fn])).numbers

    def pass_begins(self, event: Pass) -> None:
        lines = [it for it in self._lines.values() if it.learning]
        if not lines or self.recorder.operations is None:
            return  # comparisons are no longer seen
        others = PassGraph(_without(event, self._compared))
        keys = {self.book.slot(leaf).key for _, leaf in others.leaves}
        held = self.book.held()
        for codes in lines:
            learning = codes.learning - self._own
            self._reached |= learning & keys
            codes.lost += bool(
                (codes.onward - codes.before) & others.numbers and learning & held and not learning & keys
            )

    def step_ended(self, event: Step) -> None:
        self._compared.clear()
        for codes in self._lines.values():
            codes.before.clear()
            codes.onward.clear()

    def found(self) -> Iterator[Found]:
        for spot, codes in self._lines.items():
            learning = codes.learning - self._own
            if codes.lost < _TIMES or learning & self._reached:
                continue
            slots = [it for it in self.book.live() if it.key in learning & self.book.held()]
            code = bound_at(spot) or "q"
            yield self.say(
                "straight-through-missing",
                _given_back(spot, code) or spot,
                f"the nearest codes go on as they are: {listed(slots)} learn nothing of what is computed from them",
                "The choice of a code has no gradient. All ways from the loss to them lead through the comparison "
                "with the codes: they come near a code, and whether it serves what follows never reaches them.",
                f"{code} = z + ({code} - z).detach()  # the value of the code, and its gradient goes to z",
                certain=False,
                times=codes.lost,
                about=learning,
                names=[slot.name for slot in slots],
            )


def _is_nearest(stands: torch.Tensor, code: torch.Tensor, book: torch.Tensor) -> bool:
    """Say whether rows are rows of the codebook, and those nearest to others: by distance or by angle."""
    for axis in range(code.dim()):
        if code.shape[axis] == book.shape[1]:
            rows, others = (it.movedim(axis, -1).reshape(-1, book.shape[1])[:_ROWS] for it in (code, stands))
            for by in (torch.Tensor.clone, torch.nn.functional.normalize):
                if torch.allclose(by(book)[torch.cdist(by(others), by(book)).argmin(1)], by(rows), atol=1e-5):
                    return True
    return False


def _without(event: Pass, left_out: Set[int]) -> list[LiveNode]:
    """Return the nodes that a pass reaches without going through some of them."""
    found: dict[LiveNode, None] = {}
    waiting = [node_behind(out) for out in event.outputs]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found and number_of(node) not in left_out:
            found[node] = None
            waiting += [to for to, _ in node.next_functions]
    return list(found)


def _given_back(spot: Spot, name: str) -> Spot | None:
    """Return the line on which the function around a line returns a name."""
    scope = function_around(spot)
    for node in ast.walk(scope) if isinstance(scope, ast.FunctionDef) else ():
        if isinstance(node, ast.Return) and node.value and name in map(ast.unparse, taken_apart(node.value)):
            return Spot(spot.file, node.lineno)
    return None
