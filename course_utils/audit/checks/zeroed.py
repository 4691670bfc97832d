"""The smallest or largest of values that a mask multiplied: what it made 0 wins."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op
from course_utils.audit.followed import Followed
from course_utils.audit.lines import Spot
from course_utils.audit.source import function_around, source_at

_PRODUCTS = frozenset({"mul", "__mul__", "__rmul__", "multiply"})
_FILLS = frozenset({"masked_fill", "where", "__setitem__"})
_SMALLEST = frozenset({"min", "amin", "argmin"})
_LARGEST = frozenset({"max", "amax", "argmax"})
_PLACES = frozenset({"argmin", "argmax", "topk"})
_INDICES = re.compile(r"\.indices|\[1\]|^\w+, \w+ = ")
_FLOORS = re.compile(r"relu|clamp|clip\(|softplus|hinge|maximum", re.IGNORECASE)  # for which a 0 is the least
_KEPT, _LOOKS = 16, 60
_LARGE = 1 << 20
_TIMES, _ROWS = 2, 4
_SURE, _OFTEN = 0.95, 0.2  # of the rows with both kinds of entries: for values, and for places


@dataclass
class _Won:
    """How often an entry that a mask made 0 was the smallest or the largest, of how many rows."""

    smallest: bool
    masked: Spot
    times: int = 0
    rows: int = 0
    won: int = 0


class Zeroed(Check):
    """Products with masks, and what is picked of them as the smallest or the largest."""

    codes: ClassVar = ("zero-wins",)
    functions: ClassVar = _PRODUCTS | _FILLS | _SMALLEST | _LARGEST | {"topk"}

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._looks: Counter[Spot] = Counter()
        # Of a product: which of its entries the mask keeps, and the line.
        self._masked: Followed[tuple[torch.Tensor, Spot]] = Followed(_KEPT)
        self._won: dict[tuple[Spot, bool, bool], _Won] = {}  # by the line, whether places, whether the smallest

    def function(self, event: Op) -> None:
        if event.name in _PRODUCTS | _FILLS:
            self._mask(event)
            return
        values: Any = event.args[0] if event.args else None
        known = self._masked.of(values)
        if known is not None:
            self._pick(event, values, *known)

    def _mask(self, event: Op) -> None:
        out, spot = event.args[0] if event.name == "__setitem__" else event.out, event.spot
        small = isinstance(out, torch.Tensor) and out.is_floating_point() and out.dim() > 0 and out.numel() <= _LARGE
        if spot is None or not small or self._looks[spot] >= _LOOKS:
            return
        self._looks[spot] += 1
        keep = _kept(event)
        if keep is not None:
            self._masked.keep(out, (keep, spot))

    def _pick(self, event: Op, values: torch.Tensor, mask: torch.Tensor, masked: Spot) -> None:
        spot, axis = event.spot, _axis(event)
        if spot is None or axis is None or values.shape[axis] < 2:
            return
        smallest = event.name in _SMALLEST or (event.name == "topk" and not event.argument(3, "largest", True))
        places = event.name in _PLACES or _INDICES.search(source_at(spot)) is not None
        if not places and not values.requires_grad:
            return
        keep, plain = mask.expand(values.shape), values.detach()
        own = plain[keep]
        if bool(((own == 0) | (own == 1)).all()):  # of two masks the smallest says whether both hold
            return
        rows = keep.any(axis) & ~keep.all(axis)
        edge = torch.inf if smallest else -torch.inf
        best = torch.where(keep, plain, torch.full_like(plain, edge))
        best = best.amin(axis) if smallest else best.amax(axis)
        won = rows & ((best > 0) if smallest else (best < 0))
        found = self._won.setdefault((spot, places, smallest), _Won(smallest, masked))
        found.times += bool(rows.any())
        found.rows += int(rows.sum())
        found.won += int(won.sum())

    def found(self) -> Iterator[Found]:
        told: set[Spot] = set()
        for (spot, places, smallest), it in self._won.items():
            share = it.won / max(it.rows, 1)
            if spot in told or it.times < _TIMES or it.rows < _ROWS or share < (_OFTEN if places else _SURE):
                continue
            scope = function_around(spot)
            if not smallest and _FLOORS.search(source_at(spot) + _text(scope)):
                continue
            told.add(spot)
            word, bound = ("smallest", "inf") if smallest else ("largest", "-inf")
            where = f" (line {it.masked.line})" if it.masked != spot else ""
            yield self.say(
                "zero-wins",
                spot,
                f"the {word} is an entry that the mask made 0, in {it.won} of {it.rows} rows",
                f"A product with a mask{where} leaves 0 where nothing was to be looked at, and 0 is {word[:-3]}er than "
                "what is kept. What is picked is no candidate, and the candidates have no part in the result.",
                f"values.masked_fill(~mask, float('{bound}')).{'min' if smallest else 'max'}(dim=1)",
                certain=False,
                times=it.times,
            )


def _text(scope: ast.AST | None) -> str:
    return ast.unparse(scope) if scope is not None else ""


def _kept(event: Op) -> torch.Tensor | None:
    """Return which entries of a product a mask of zeros and ones keeps; None where nothing is a mask."""
    one, other, value = (*event.args, None, None, None)[:3]
    if event.name in _FILLS:
        mask, zero = (one, value) if event.name == "where" else (other, value)
        turned = event.name == "where" and not _is_zero(zero)
        plain = isinstance(mask, torch.Tensor) and mask.dtype is torch.bool and _is_mask(mask)
        if not plain or not _is_zero(other if turned else zero):
            return None
        kept: torch.Tensor = mask.detach()
        return kept if event.name == "where" and not turned else ~kept
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return None
    for mask, values in ((other, one), (one, other)):
        if values.is_floating_point() and _is_mask(mask):
            return mask.detach() != 0
    return None


def _is_zero(value: object) -> bool:
    """Say whether a value that is filled in is 0."""
    if isinstance(value, torch.Tensor):
        return not value.requires_grad and not bool(value.detach().any())
    return isinstance(value, int | float) and value == 0


def _is_mask(tensor: torch.Tensor) -> bool:
    """Say whether a tensor holds zeros and ones, and both."""
    if tensor.requires_grad or not tensor.dim():
        return False
    values = tensor.detach()
    if values.dtype is torch.bool:
        return bool(values.any()) and not bool(values.all())
    zeros, ones = values == 0, values == 1
    return bool((zeros | ones).all()) and bool(zeros.any()) and bool(ones.any())


def _axis(event: Op) -> int | None:
    """Return the one axis along which something is picked; None where it is another form of the function."""
    dim = event.argument(2, "dim", -1) if event.name == "topk" else event.argument(1, "dim")
    if isinstance(dim, tuple | list) and len(dim) == 1:
        dim = dim[0]
    return dim if isinstance(dim, int) and not isinstance(dim, bool) else None
