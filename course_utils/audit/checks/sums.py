"""A loss that is summed over the batch, and flies off: its rate is one for the mean."""

from __future__ import annotations

import ast
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from course_utils.audit.book import Trainer
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Clip, Pass, Step, node_behind, number_of, saved_value
from course_utils.audit.lines import Spot
from course_utils.audit.source import nearest, source_at, tree_of
from course_utils.graph.trace import LiveNode, node_name

_TERMS = 8  # of a sum, at least
_STEPS = 10
_EACH = 20  # after so many steps only every so many are looked at
_CLOSELY = 200
_FLEW, _STAYED = 10.0, 0.9  # times the first loss: the largest one, and the last ones' mean
_JUMPED, _ROSE = 3.0, 1.2  # the same, where no other optimizer works against it
_LARGE = 0.5  # rate for the mean: such a one moves what the loss needs in a few steps
_SUM = 2  # what C++ calls a reduction by a sum


@dataclass
class _Summed:
    """The losses of an optimizer's steps, as means of their terms."""

    trainer: Trainer
    spot: Spot | None
    rate: float  # for the mean
    terms: int
    first: float
    worst: float = 0.0
    steps: int = 0
    ends: deque[float] = field(default_factory=lambda: deque(maxlen=_STEPS))


class Sums(Check):
    """Losses that are sums, against the rate of those who follow them."""

    codes: ClassVar = ("summed-loss",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._summed: dict[int, _Summed | None] = {}
        self._now: tuple[float, int, Spot | None] | None = None
        self._clipped = False

    def clipped(self, event: Clip) -> None:
        self._clipped |= event.bounded

    def pass_begins(self, event: Pass) -> None:
        self._now = None
        if self._clipped or (self._summed and not any(self._summed.values())):
            return
        if self.clock.steps > _CLOSELY and self.clock.steps % _EACH:
            return
        node = node_behind(event.outputs[0]) if event.accumulate and len(event.outputs) == 1 else None
        terms = _terms(node) if node is not None and not event.seeded and not event.scaled else 0
        if node is not None and terms >= _TERMS and event.outputs[0].numel() == 1:
            spot = self.recorder.lines.of(number_of(node)) or event.spot
            self._now = float(event.outputs[0].detach()) / terms, terms, spot

    def step_begins(self, event: Step) -> None:
        now, self._now = self._now, None
        key = event.trainer.key
        if key not in self._summed:
            self._summed[key] = self._new(event, *now) if now is not None else None
        summed = self._summed[key]
        if summed is None:
            return
        summed.steps += 1
        if now is not None:
            summed.worst = max(summed.worst, now[0]) if math.isfinite(now[0]) else math.inf
            summed.ends.append(now[0])
            if now[0] < 0:
                self._summed[key] = None

    def _new(self, event: Step, loss: float, terms: int, spot: Spot | None) -> _Summed | None:
        optimizer = event.trainer.ref()
        if optimizer is None or type(optimizer).__name__ != "SGD" or event.closure or not 0 < loss < math.inf:
            return None
        rates = [
            float(it["lr"]) * terms / max(1 - float(it.get("momentum") or 0.0), 0.01) for it in optimizer.param_groups
        ]
        return _Summed(event.trainer, spot, max(rates), terms, loss) if max(rates) >= _LARGE else None

    def found(self) -> Iterator[Found]:
        for summed in self._summed.values():
            if (
                summed is None
                or self._clipped
                or summed.steps < _STEPS
                or not _flew_off(summed, len(self._summed) == 1)
            ):
                continue
            optimizer = summed.trainer.ref()
            rate = max(float(group["lr"]) for group in optimizer.param_groups) if optimizer is not None else 0.0
            yield self.say(
                "summed-loss",
                _reduced_at(summed.spot),
                f"the loss is a sum of {summed.terms} terms, and does not become better at a rate of {rate:g}",
                f"Its gradient is {summed.terms} times that of the mean, and so is each step. The loss rose far above "
                "its first value. A rate that is usual for means is too large by the size of the batch.",
                'reduction="mean"  # or divide by len(x); or a rate that is as many times smaller',
                certain=False,
                times=summed.steps,
            )


def _flew_off(summed: _Summed, alone: bool) -> bool:
    """Say whether the losses rose far above the first, or to no number, and did not come back."""
    ends = list(summed.ends)
    if not all(map(math.isfinite, ends)):
        return True
    largest, last = summed.worst / summed.first, sum(ends) / len(ends) / summed.first
    return (largest >= _FLEW and last >= _STAYED) or (alone and largest >= _JUMPED and last >= _ROSE)


def _terms(node: LiveNode) -> int:
    """Return how many terms a loss is the sum of; 0 for one that is something else."""
    name: str = node_name(node)
    if name == "SumBackward0":
        return math.prod(getattr(node, "_saved_self_sym_sizes", ()))
    if getattr(node, "_saved_reduction", None) == _SUM:
        given: Any = saved_value(node, "target" if name.startswith("Nll") else "self")
        return given.numel() if given is not None else 0
    return 0


def _reduced_at(spot: Spot | None) -> Spot | None:
    """Return the line that asks a loss for a sum: the one that computes it, or one with `reduction="sum"`."""
    if spot is None or "sum" in source_at(spot):
        return spot
    tree = tree_of(spot.file)
    found = [
        Spot(spot.file, node.value.lineno)
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.keyword) and node.arg == "reduction"
        if isinstance(node.value, ast.Constant) and node.value.value == "sum"
    ]
    return nearest(sorted(found), spot) or spot
