"""Rows whose likeness is compared, and that were brought to length 1 along the wrong axis: over the batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, before, multiplies_weights, number_of, through_views
from course_utils.audit.followed import Followed
from course_utils.audit.lines import Spot
from course_utils.graph.trace import node_name

_NORMS = frozenset({"norm", "linalg_norm", "linalg_vector_norm"})
_QUOTIENTS = frozenset({"__truediv__", "div"})
_TURNS = frozenset({"T.__get__", "mT.__get__", "t", "transpose"})
_PRODUCTS = frozenset({"matmul", "__matmul__", "mm"})
_CHOICES = frozenset({"cross_entropy", "softmax", "log_softmax", "logsumexp"})
_SCALING = ("DivBackward0", "MulBackward0")
_ROWS, _TIMES, _MOST = 4, 2, 128


class _Unit(NamedTuple):
    """The axis along which the squares of a matrix add up to 1, and the line that made it so."""

    axis: int
    spot: Spot


class UnitRows(Check):
    """Along which axis the rows of a contrastive loss have length 1, and along which their products sum."""

    codes: ClassVar = ("normalised-axis",)
    functions: ClassVar = frozenset({"normalize"}) | _NORMS | _QUOTIENTS | _TURNS | _PRODUCTS | _CHOICES

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._norms: Followed[tuple[int, int]] = Followed(_MOST)  # with the axis, and the id of what it is of
        self._units: Followed[_Unit] = Followed(_MOST)
        self._apart: dict[int, Spot] = {}  # by the number of a product's node
        self._found: Counter[Spot] = Counter()

    def function(self, event: Op) -> None:
        name, out = event.name, event.out
        one: Any = event.argument(0, "input")
        if not isinstance(one, torch.Tensor) or one.dim() != 2:
            return
        if name == "normalize":
            self._keep(out, event.argument(2, "dim", 1), event.spot)
        elif name in _NORMS:
            axis = event.argument(2, "dim")
            if isinstance(axis, int) and isinstance(out, torch.Tensor):
                self._norms.keep(out, (axis % 2, id(one)))
        elif name in _QUOTIENTS:
            known = self._norms.of(event.argument(1, "other"))
            if known is not None and known[1] == id(one):
                self._keep(out, known[0], event.spot)
        elif name in _TURNS:
            unit = self._units.of(one)
            if unit is not None and out.shape == one.shape[::-1]:
                self._units.keep(out, unit._replace(axis=1 - unit.axis))
        elif name in _PRODUCTS:
            self._product(one, event.argument(1, "other" if name != "mm" else "mat2"), out)
        elif self._apart:
            self._choose(one)

    def _keep(self, out: Any, axis: Any, spot: Spot | None) -> None:
        if isinstance(axis, int) and spot is not None and out.requires_grad:
            self._units.keep(out, _Unit(axis % 2, spot))

    def _product(self, one: torch.Tensor, other: Any, out: torch.Tensor) -> None:
        if not isinstance(other, torch.Tensor) or other.dim() != 2 or out.grad_fn is None:
            return
        if multiplies_weights(out.grad_fn):
            return
        square = out.shape[0] == out.shape[1] >= _ROWS and one.shape[0] != one.shape[1]
        mine, theirs = self._units.of(one), self._units.of(other)
        wrong = (
            mine if mine is not None and mine.axis == 0 else theirs if theirs is not None and theirs.axis == 1 else None
        )
        if wrong is not None and square:
            if len(self._apart) > _MOST:
                self._apart.clear()
            self._apart[number_of(out.grad_fn)] = wrong.spot

    def _choose(self, scores: torch.Tensor) -> None:
        node = through_views(scores.grad_fn)
        while node is not None and node_name(node) in _SCALING:
            node = through_views(before(node) or before(node, 1))
        spot = self._apart.pop(number_of(node), None) if node is not None else None
        if spot is not None:
            self._found[spot] += 1

    def found(self) -> Iterator[Found]:
        for spot, times in self._found.items():
            if times >= _TIMES:
                yield self.say(
                    "normalised-axis",
                    spot,
                    "length 1 is given to the columns, over the batch, and rows are compared by their products",
                    "The product of two rows is the cosine of their angle where each row has length 1. Divided along "
                    "axis 0, each feature is scaled by all samples of the batch, and rows keep lengths of their own.",
                    "F.normalize(z, dim=1)  # along the features of each row",
                    certain=False,
                    times=times,
                )
