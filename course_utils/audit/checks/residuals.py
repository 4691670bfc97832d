"""Sums of two names that stand for one tensor: a residual connection without a branch."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op
from course_utils.audit.lines import Spot
from course_utils.audit.source import statement

_TIMES = 2


class Residuals(Check):
    """Sums whose two sides have names of their own, and are the same."""

    codes: ClassVar = ("added-to-itself",)
    functions: ClassVar = frozenset({"add", "add_"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._same: Counter[Spot] = Counter()
        self._others: set[Spot] = set()  # lines that add different things as well

    def function(self, event: Op) -> None:
        sides = event.args[:2]
        if len(sides) < 2 or not all(isinstance(it, torch.Tensor) and it.requires_grad for it in sides):
            return
        spot = event.spot
        if spot is None or not _sides(spot):
            return
        one, other = sides
        same = one is other or (
            one.grad_fn is not None and one.grad_fn is other.grad_fn and one.output_nr == other.output_nr
        )
        if same:
            self._same[spot] += 1
        else:
            self._others.add(spot)

    def found(self) -> Iterator[Found]:
        for spot, times in self._same.items():
            if times < _TIMES or spot in self._others:
                continue
            one, other = _sides(spot) or ("", "")
            yield self.say(
                "added-to-itself",
                spot,
                f"{one} and {other} are the same tensor here: the sum is twice {one}",
                "Both names stand for one result, so nothing is carried past a layer. In a residual connection the "
                "input is kept before the layers that change it.",
                f"{other} = x  # before the layers, and the sum with their result",
                certain=False,
                times=times,
                names=(one, other),
            )


@lru_cache(maxsize=512)
def _sides(spot: Spot) -> tuple[str, str] | None:
    """Return the two names that the one sum at a line adds; None where it adds anything else, or a name to itself."""
    found = statement(spot)
    sums = [it for it in ast.walk(found) if isinstance(it, ast.BinOp) and isinstance(it.op, ast.Add)] if found else []
    sides: tuple[ast.expr, ...] = (sums[0].left, sums[0].right) if len(sums) == 1 else ()
    if isinstance(found, ast.AugAssign) and isinstance(found.op, ast.Add) and not sums:
        sides = found.target, found.value
    names = [it.id for it in sides if isinstance(it, ast.Name)]
    return (names[0], names[1]) if len(set(names)) == 2 else None
