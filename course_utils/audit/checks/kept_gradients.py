"""Buffers of an update by hand that are the gradient itself, and not a copy of it."""

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
from course_utils.audit.source import assignments, statement

_TIMES = 3


class KeptGradients(Check):
    """Averages and momenta that share the memory of `.grad`: what clears the one clears the other."""

    codes: ClassVar = ("buffer-is-gradient",)
    functions: ClassVar = frozenset({"mul_", "add_", "lerp_", "addcmul_", "__imul__", "__iadd__"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._writes: Counter[Spot] = Counter()

    def function(self, event: Op) -> None:
        written, spot = event.args[0] if event.args else None, event.spot
        if spot is None or not isinstance(written, torch.Tensor) or not _buffer(spot):
            return
        held = [slot.ref() for slot in self.book.slots.values()]
        gradients = [p.grad for p in held if p is not None and p.grad is not None and p.shape == written.shape]
        if any(it.data_ptr() == written.data_ptr() for it in gradients):
            self._writes[spot] += 1

    def found(self) -> Iterator[Found]:
        for spot, times in self._writes.items():
            if times < _TIMES:
                continue
            name = _buffer(spot)
            kept = next((Spot(spot.file, it.lineno) for it in assignments(spot, name) if _keeps(it)), None)
            yield self.say(
                "buffer-is-gradient",
                kept or spot,
                f"{name} is the gradient itself, and no copy: this line writes into .grad"
                if kept is None
                else f"{name} is the gradient itself, and no copy",
                "Two names stand for one tensor. The next pass adds into it, and what clears the gradients clears it, "
                "too: what was to be remembered over steps is lost, or counted twice.",
                f"{name} = p.grad.clone()",
                times=times,
                names=(name,),
                also=[("written here", spot)],
            )


@lru_cache(maxsize=512)
def _buffer(spot: Spot) -> str:
    """Return what a line writes in place, if it is an attribute or an entry whose name does not speak of gradients."""
    line = statement(spot)
    owners: list[ast.expr] = [line.target] if isinstance(line, ast.AugAssign) else []
    for node in ast.walk(line) if line is not None else ():
        method = node.func if isinstance(node, ast.Call) else None
        if isinstance(method, ast.Attribute) and method.attr in KeptGradients.functions:
            owners.append(method.value)
    names = [ast.unparse(it) for it in owners if isinstance(it, ast.Attribute | ast.Subscript)]
    return next((name for name in names if "grad" not in name), "")


def _keeps(line: ast.stmt) -> bool:
    """Say whether a statement binds a name to what another name stands for, without computing anything."""
    return isinstance(line, ast.Assign) and isinstance(line.value, ast.Name | ast.Attribute)
