"""Columns that are divided by a standard deviation of zero."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import torch

from course_utils.audit.events import Call, Op
from course_utils.audit.expressions import assigned_value
from course_utils.audit.followed import Followed
from course_utils.audit.holders import variables
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parts
from course_utils.audit.reading import Reading, Scopes, Seen, Told
from course_utils.explain.source import called

_SPREADS = frozenset({"std", "var", "std_mean", "var_mean"})
_KEEPS = frozenset(
    {
        *("sqrt", "add", "__add__", "__radd__", "add_", "__iadd__", "clamp", "clamp_min", "clip", "unsqueeze", "view"),
        *("reshape", "to", "float", "clone", "detach", "squeeze", "expand", "maximum"),
    }
)
_DIVIDES = frozenset({"__truediv__", "div", "true_divide", "divide", "div_", "__itruediv__"})
_MOST = 64
_HUGE, _TINY = 1e4, 1e-4  # of a normalised number; of a column's spread beside the middle one
_SEARCHES = 2
_LARGEST = 100_000


class FlatColumns(Reading):
    """Which standard deviations are zero for a column, and what a division by them gives."""

    codes: ClassVar = ("spread-zero",)
    functions: ClassVar = _SPREADS | _KEEPS | _DIVIDES

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self._spreads: Followed[bool] = Followed(_MOST)
        self._divided: dict[Spot, str] = {}
        self._searches, self._step = 0, -1
        self._zeros: set[str] = set()  # names of arrays with zeros beside other numbers
        self.readers = (self._by_value, self._by_name)  # type: ignore[misc]

    def function(self, event: Op) -> None:
        if event.name in _SPREADS:
            found = event.out[0] if isinstance(event.out, tuple) else event.out
            if isinstance(found, torch.Tensor) and found.numel() > 1 and not found.requires_grad:
                self._spreads.keep(found, True)
        elif len(self._spreads):
            if event.name not in _DIVIDES:
                if isinstance(event.out, torch.Tensor) and any(self._spreads.of(it) for it in event.args):
                    self._spreads.keep(event.out, True)
            elif self._spreads.of(event.argument(1, "other")) and event.spot is not None:
                self._divide(event.out, event.argument(1, "other"), event.spot)

    def _divide(self, out: Any, by: torch.Tensor, spot: Spot) -> None:
        sizes = by.abs()
        flat = sizes <= _TINY * sizes.median()
        if not bool(flat.any()) or not bool((sizes > 0).any()):
            return
        given = out.detach()[..., :_LARGEST]
        if not bool(torch.isfinite(given).all()):
            self._divided.setdefault(spot, "what comes out is no number, or has no bound")
        elif float(given.abs().max()) > _HUGE:
            self._divided.setdefault(spot, f"numbers up to {float(given.abs().max()):.0e} come out")

    def called(self, event: Call) -> None:
        super().called(event)
        if self._searches < _SEARCHES and self.clock.steps != self._step:
            self._searches, self._step = self._searches + 1, self.clock.steps
            self._zeros.update(name for _, name, value in variables() if _has_zeros(value))

    def _by_value(self, scopes: Scopes, seen: Seen) -> Iterator[Told]:
        """Yield the divisions of tensors that were seen to give what they should not."""
        yield from (_told(spot, what) for spot, what in self._divided.items())

    def _by_name(self, scopes: Scopes, seen: Seen) -> Iterator[Told]:
        """Yield the divisions by a name for a spread with zeros in it."""
        for file, scope in scopes if self._zeros else ():
            for node in parts(scope):
                by = node.right if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) else None
                if not isinstance(by, ast.Name) or by.id not in self._zeros:
                    continue
                made = assigned_value(Spot(file, by.lineno), by.id)
                if made is not None and _is_spread(made):
                    yield _told(Spot(file, by.lineno), "what comes out is no number, or has no bound")


def _has_zeros(value: Any) -> bool:
    if isinstance(value, torch.Tensor) and value.is_floating_point() and 1 < value.numel() <= _LARGEST:
        value = value.detach().cpu().double().numpy()
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or not 1 < value.size <= _LARGEST:
        return False
    return bool((value == 0).any() and (value > 0).any() and (value >= 0).all())


def _is_spread(value: ast.expr) -> bool:
    """Say whether an expression is a standard deviation as it came, with nothing added to it."""
    return isinstance(value, ast.Call) and called(value) in ("std", "nanstd")


def _told(spot: Spot, what: str) -> Told:
    return Told(
        "spread-zero",
        spot,
        f"a column's standard deviation is zero, and the column is divided by it: {what}",
        "A column that has one value in all rows has no spread. 0 / 0 is NaN, and a number that is added to the "
        "divisor and is far smaller than the data makes any other value of the column huge.",
        "std = torch.where(std < 1e-6, torch.ones_like(std), std)  # before the division; or leave the column out",
    )
