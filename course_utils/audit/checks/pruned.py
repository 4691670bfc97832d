"""Weights that a mask set to 0 once, and that the steps after it move away from 0 again."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import torch

from course_utils.audit.book import Slot, listed, sampled
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Step
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import own
from course_utils.audit.reading import files_of, scopes_of

_SLOTS = 8  # matrices that are looked at
_LEAST, _SHARE = 8, 0.2  # so many elements, and such a share of a matrix, were set to 0 at once
_AFTER = 3  # steps
_BACK = 0.5  # such a share of them is not 0 any more
_MASK = re.compile(r"mask|prun|sparsi", re.IGNORECASE)
_WEIGHTS = re.compile(r"(\.data|weight|param\w*|^p|^w)$")
_WRITES = frozenset({"mul_", "copy_", "masked_fill_", "multiply_"})


@dataclass
class _Looked:
    slot: Slot
    zeros: torch.Tensor  # which elements were 0 before the last step
    others: int = -1  # how many were not
    pruned: torch.Tensor | None = None  # those that were set to 0 together, the last time
    after: int = 0  # steps since


class Pruned(Check):
    """Which elements of matrices are 0 before each step, and whether they stay so."""

    codes: ClassVar = ("mask-lost",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._looked: dict[int, _Looked] = {}

    def step_begins(self, event: Step) -> None:
        if not any(map(_speaks_of_masks, files_of(self.recorder))):
            return  # nothing would be told
        for slot in event.trainer.slots[:_SLOTS]:
            tensor = slot.tensor
            if tensor is None or tensor.dim() < 2 or not tensor.is_floating_point():
                continue
            sample, known = sampled(tensor), self._looked.get(slot.key)
            others = int(torch.count_nonzero(sample))
            if known is not None and others == known.others and sample.shape == known.zeros.shape:
                known.after += 1  # as many are 0 as were before: nobody has pruned
                continue
            zeros = sample == 0
            new = zeros if known is None or known.zeros.shape != zeros.shape else zeros & ~known.zeros
            if known is None:
                known = self._looked[slot.key] = _Looked(slot, zeros)
            many = int(new.sum())
            if many >= max(_LEAST, _SHARE * new.numel()) and not bool(zeros.all()):
                known.pruned, known.after = zeros, 0
            known.zeros, known.others, known.after = zeros, others, known.after + 1

    def found(self) -> Iterator[Found]:
        back = [(it, moved) for it in self._looked.values() if (moved := _moved(it)) is not None]
        spot = next(_masks(scopes_of(self.recorder)), None) if back else None
        if spot is None:
            return
        slots = [it.slot for it, _ in back]
        pruned = sum(int(it.pruned.sum()) for it, _ in back if it.pruned is not None)
        moved = sum(many for _, many in back)
        yield self.say(
            "mask-lost",
            spot,
            f"the zeros of the mask do not last: {100 * moved // pruned} of 100 weights that were set to 0 are not 0 "
            "after the steps that followed",
            f"It was done once, to {listed(slots)}. The gradient of a weight that is 0 is seldom 0, and momentum and "
            "Adam move it, too: each step undoes some of the mask.",
            "with torch.no_grad(): p.mul_(mask)  # after each optimizer.step(); or torch.nn.utils.prune, which keeps "
            "the mask in the forward",
            certain=False,
            times=max(it.after for it, _ in back),
            about={slot.key for slot in slots},
            names=[slot.name for slot in slots],
        )


@lru_cache(maxsize=64)
def _speaks_of_masks(file: str) -> bool:
    return _MASK.search("".join(linecache.getlines(file))) is not None


def _moved(it: _Looked) -> int | None:
    """Return how many of the elements that were set to 0 are not 0 any more; None where most of them are."""
    tensor = it.slot.tensor
    if it.pruned is None or it.after < _AFTER or tensor is None:
        return None
    now = sampled(tensor) == 0
    if now.shape != it.pruned.shape:
        return None
    moved, before = int((it.pruned & ~now).sum()), int((it.pruned & ~it.zeros).sum())
    return moved if min(moved, before) >= _BACK * int(it.pruned.sum()) else None


def _masks(scopes: list[tuple[str, ast.AST]]) -> Iterator[Spot]:
    """Yield the lines that multiply weights by a mask, fill them by one, or make what `prune` left out permanent."""
    for file, scope in scopes:
        for line in own(scope):
            written = _written(line)
            if written is not None and _MASK.search(ast.unparse(line)):
                yield Spot(file, line.lineno)


def _written(line: ast.stmt) -> ast.expr | None:
    """Return the weights that a line writes to, as their names say; of `prune.remove` the layer."""
    call = line.value if isinstance(line, ast.Expr) else None
    found: ast.expr | None = None
    if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("prune.remove"):
        return call.args[0] if call.args else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _WRITES:
        fills = call.func.attr != "masked_fill_" or _is_zero(call.args[-1] if call.args else None)
        found = call.func.value if fills else None
    elif isinstance(line, ast.AugAssign) and isinstance(line.op, ast.Mult):
        found = line.target
    elif isinstance(line, ast.Assign):
        target = line.targets[0]
        if isinstance(target, ast.Attribute) or (isinstance(target, ast.Subscript) and _is_zero(line.value)):
            found = target
    while isinstance(found, ast.Subscript):
        found = found.value
    return found if found is not None and _WEIGHTS.search(ast.unparse(found)) else None


def _is_zero(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0
