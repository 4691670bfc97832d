"""Terms of a loss whose weight is 0 in every pass, since a ratio lost what stood behind its point."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Pass, constant_of, node_behind, number_of
from course_utils.audit.lines import Spot
from course_utils.audit.source import statement
from course_utils.audit.summands import MOST, is_weighted, summands
from course_utils.audit.whole_numbers import whole_weight
from course_utils.graph.trace import LiveNode

_LOOKS, _PASSES = 2, 40  # of the passes from one line, and of such lines: what has no term of weight 0 is not looked at
_TIMES = 5


@dataclass
class _Still:
    """A product with 0, the line that made it so, and in how many passes it was seen."""

    at: Spot
    ratio: Spot
    times: int = 0
    gone: bool = False


class ZeroWeights(Check):
    """The weights of a loss's terms, where one is 0."""

    codes: ClassVar = ("weight-of-zero",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._looked: Counter[Spot] = Counter()
        self._seen: dict[Spot, _Still] = {}  # by the line of the pass

    def pass_begins(self, event: Pass) -> None:
        if event.spot is None or not event.accumulate or len(event.outputs) != 1:
            return
        still = self._seen.get(event.spot)
        if still.gone if still is not None else not self._looks_at(event.spot):
            return
        node = _of_zero(event)
        if still is None:
            still = self._still(node) if node is not None else None
            if still is None:
                return
            self._seen[event.spot] = still
        still.times += 1
        still.gone = node is None

    def _looks_at(self, spot: Spot) -> bool:
        """Say whether a line whose passes have shown no term of weight 0 yet is still looked at; each asking counts."""
        self._looked[spot] += 1
        return self.recorder.operations is not None and self._looked[spot] <= _LOOKS and len(self._looked) <= _PASSES

    def _still(self, node: LiveNode) -> _Still | None:
        at = self.recorder.lines.of(number_of(node))
        line = statement(at) if at is not None else None
        for product in ast.walk(line) if line is not None else ():
            if at is None or not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.Mult):
                continue
            for factor in (product.left, product.right):
                if (ratio := whole_weight(at, factor)) is not None:
                    return _Still(at, ratio)
        return None

    def found(self) -> Iterator[Found]:
        for still in self._seen.values():
            if still.times >= _TIMES and not still.gone:
                yield self.say(
                    "weight-of-zero",
                    still.ratio,
                    f"a term of the loss is multiplied by 0 in each of the {still.times} passes",
                    "Its weight is a ratio of which only the whole number is kept: below 1 that is 0. The term is "
                    "computed, and trains nothing.",
                    "step / warmup  # in place of step // warmup or int(step / warmup): it keeps the fraction",
                    times=still.times,
                    also=[("multiplied here", still.at)],
                )


def _of_zero(event: Pass) -> LiveNode | None:
    """Return the product of a term with the number 0 in what a pass begins at, if there is one."""
    parts = summands(node_behind(event.outputs[0]))
    for part in parts if len(parts) < MOST else ():
        factor = constant_of(part.node) if is_weighted(part.node) else None
        if factor is not None and factor.numel() == 1 and not bool(factor):
            return part.node
    return None
