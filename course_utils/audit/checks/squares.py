"""A row that met a column before the loss: an advantage of shape (N, N), where N numbers were meant."""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass, node_behind, through_views
from course_utils.audit.lines import Spot, frames
from course_utils.audit.source import bound_at, source_at

_MEETING = frozenset({"add", "sub", "rsub", "__rsub__", "mul", "div", "__rdiv__", "minimum", "maximum", "min", "max"})
_LOSSES = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits"})
_ONWARD = _MEETING | {
    *("neg", "abs", "square", "sqrt", "exp", "log", "tanh", "sigmoid", "relu", "softplus", "logsigmoid", "where"),
    *("clamp", "clip", "clamp_min", "clamp_max", "min", "max", "detach", "clone", "float", "to", "nan_to_num"),
}
_UPRIGHT = frozenset({"unsqueeze", "__getitem__", "view", "reshape", "t", "transpose", "permute", "expand"})
_MEANT = re.compile(r"None|newaxis|unsqueeze|\.T\b|\.mT\b|\.t\(|transpose|permute|view|reshape|outer|expand|keepdim")

_NEAR = 6  # lines between where a column was set up, and where it meets a row on purpose
_MOST = 200
_TIMES = 2


@dataclass
class _Met:
    """One line where a row met a column, and how many passes had the result in their loss."""

    count: int
    row_first: bool
    numbers: set[int] = field(default_factory=set)
    passes: int = 0


class Squares(Check):
    """Follows matrices that a row and a column made, through elementwise functions, to a mean or sum over all."""

    codes: ClassVar = ("broadcast-square",)
    functions: ClassVar = frozenset({"*"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._met: dict[Spot, _Met] = {}
        self._meant: set[Spot] = set()
        self._squares: dict[int, tuple[weakref.ref[torch.Tensor], Spot]] = {}
        self._columns: dict[int, tuple[weakref.ref[torch.Tensor], CodeType, int]] = {}

    def function(self, event: Op) -> None:
        out = event.out
        if not isinstance(out, torch.Tensor):
            return
        if event.name in _UPRIGHT and out.dim() == 2 and out.shape[1] == 1:
            self._set_up(out)
        elif event.name in _MEETING and out.dim() == 2 and 1 < out.shape[0] == out.shape[1]:
            self._meet(event, out)
        if self._squares and (out.dim() == 0 or (out.dim() == 2 and out.shape[0] == out.shape[1])):
            self._follow(event, out)

    def _set_up(self, column: torch.Tensor) -> None:
        """Remember where a column was made of something else."""
        frame = next(frames(), None)
        if frame is not None:
            if len(self._columns) > _MOST:
                self._columns.clear()
            self._columns[id(column)] = weakref.ref(column), frame.f_code, frame.f_lineno

    def _meet(self, event: Op, out: torch.Tensor) -> None:
        one, other = (*event.args[:2], *event.kwargs.values(), None, None)[:2]
        if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
            return
        row, column = (one, other) if one.dim() == 1 else (other, one)
        if row.dim() != 1 or column.dim() != 2 or column.shape[1] != 1 or out.shape[0] != row.shape[0]:
            return
        frame = next(frames(), None)
        if frame is None:
            return
        spot = Spot(frame.f_code.co_filename, frame.f_lineno)
        made = self._columns.get(id(column))
        near = (
            made is not None
            and made[0]() is column
            and made[1] is frame.f_code
            and abs(made[2] - frame.f_lineno) <= _NEAR
        )
        if near or spot in self._meant or _MEANT.search(source_at(spot)) or _are_one(row, column):
            self._meant.add(spot)
            return
        self._met.setdefault(spot, _Met(row.shape[0], row is one))
        self._keep(out, spot)

    def _keep(self, square: torch.Tensor, spot: Spot) -> None:
        if len(self._squares) > _MOST:
            self._squares = {key: it for key, it in self._squares.items() if it[0]() is not None}
        if len(self._squares) <= _MOST:
            self._squares[id(square)] = weakref.ref(square), spot

    def _from(self, thing: Any) -> Spot | None:
        known = self._squares.get(id(thing))
        return known[1] if known is not None and known[0]() is thing else None

    def _follow(self, event: Op, out: torch.Tensor) -> None:
        given = [it for it in (*event.args, *event.kwargs.values()) if isinstance(it, torch.Tensor)]
        spots = list(filter(None, map(self._from, given)))
        if not spots or (spot := spots[0]) in self._meant:
            return
        # Another matrix of pairs says that pairs are meant: a mask, distances.
        if any(it.dim() == 2 and 1 < it.shape[0] == it.shape[1] and self._from(it) is None for it in given):
            self._meant.add(spot)
        elif out.dim() == 0:
            if event.name in ("mean", "sum") or event.name in _LOSSES:
                self._met[spot].numbers.update(range(event.began, event.ended))
        elif event.name in _ONWARD:
            self._keep(out, spot)

    def pass_begins(self, event: Pass) -> None:
        if self._met and event.accumulate:
            for met in self._met.values():
                if met.numbers:
                    met.passes += bool(met.numbers & event.graph.numbers)
                    met.numbers.clear()

    def found(self) -> Iterator[Found]:
        for spot, met in self._met.items():
            if met.passes < _TIMES or spot in self._meant:
                continue
            n, name = met.count, bound_at(spot) or "the result"
            shapes = [f"({n},)", f"({n}, 1)"] if met.row_first else [f"({n}, 1)", f"({n},)"]
            yield self.say(
                "broadcast-square",
                spot,
                f"{name} has shape ({n}, {n}): {shapes[0]} met {shapes[1]}, and the loss averages over all of it",
                f"Both were stretched to one shape, each entry of one meets every entry of the other. {n * n} numbers "
                f"stand where {n} were meant, and no sample is left with its own.",
                "column.squeeze(-1)  # where the model's answer has shape (N, 1): both sides of shape (N,)",
                level="likely",
                certain=False,
                times=met.passes,
                names=(name,),
            )


def _are_one(row: torch.Tensor, column: torch.Tensor) -> bool:
    """Say whether both are one tensor's numbers: pairs of its entries are meant."""
    if row.untyped_storage().data_ptr() == column.untyped_storage().data_ptr():
        return True
    one, other = through_views(node_behind(row)), through_views(node_behind(column))
    return one is not None and one is other
