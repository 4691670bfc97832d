"""The square of a mean, where the mean of squares was meant: errors of unlike signs cancel before they count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass, PassGraph, before, number_of, through_views
from course_utils.audit.lines import Spot
from course_utils.audit.source import source_at
from course_utils.graph.trace import LiveNode, node_name, walk

_DIFFERENCES = frozenset({"sub", "add", "rsub", "__rsub__", "__radd__"})
_LEAST = 4  # numbers in a difference
_TIMES = 3
_LOOKS = 12  # so many passes are looked at
_MOST = 2000


class Cancelling(Check):
    """Differences from a target, of which the loss sees nothing but the square, or the size, of their mean."""

    codes: ClassVar = ("mean-squared",)
    functions: ClassVar = _DIFFERENCES

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._differences: set[int] = set()  # numbers of nodes that take two tensors of one shape
        self._times: Counter[tuple[Spot, str]] = Counter()
        self._looks = 0

    def function(self, event: Op) -> None:
        if self._looks >= _LOOKS:
            return
        one, other = (*event.args[:2], None, None)[:2]
        if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor) or one.numel() < _LEAST:
            return
        if one.shape == other.shape and event.ended == event.began + 1:
            if len(self._differences) > _MOST:
                self._differences.clear()
            self._differences.add(event.began)

    def pass_begins(self, event: Pass) -> None:
        if not self._differences or not event.accumulate or self._looks >= _LOOKS:
            return
        self._looks += 1
        inner = event.graph.inner
        found = [(node, mean) for node in inner if (mean := _mean_below(node)) is not None]
        found = [(node, mean) for node, mean in found if self._is_difference(through_views(before(mean)))]
        if found:
            uses = Counter(to for node in inner for to in {to for to, _ in node.next_functions} if to is not None)
            for node, mean in found:
                self._note(node, mean, uses)
        self._differences.clear()

    def _is_difference(self, node: LiveNode | None) -> bool:
        return node is not None and number_of(node) in self._differences

    def _note(self, node: LiveNode, mean: LiveNode, uses: Counter[LiveNode]) -> None:
        """Count a squared mean, unless what is averaged goes into the loss on another way, too."""
        spot = self.recorder.lines.of(number_of(node))
        below = before(mean)
        while below is not None and uses[below] == 1:
            if number_of(below) in self._differences:
                answers = [to for to, _ in below.next_functions if to is not None and self._learns(to)]
                named = spot is not None and ("mean" in source_at(spot) or "sum" in source_at(spot))
                if spot is not None and named and len(answers) == 1 and uses[answers[0]] == 1:
                    self._times[spot, "size" if node_name(node) == "AbsBackward0" else "square"] += 1
                return
            below = before(below)

    def _learns(self, node: LiveNode) -> bool:
        """Say whether something that is trained stands behind a value."""
        held = self.book.held()
        return any(self.book.slot(leaf).key in held for _, leaf in PassGraph(walk([node])).leaves)

    def found(self) -> Iterator[Found]:
        for (spot, what), times in self._times.items():
            if times >= _TIMES:
                better = "square().mean()" if what == "square" else "abs().mean()"
                yield self.say(
                    "mean-squared",
                    spot,
                    f"the loss is the {what} of a mean of differences: those above and below 0 cancel",
                    "The mean can be 0 while no single difference is. Every entry gets the same gradient, and nothing "
                    "else in the loss holds the answers to their targets one by one.",
                    f"difference.{better}  # in place of mean() first",
                    certain=False,
                    times=times,
                )


def _mean_below(node: LiveNode) -> LiveNode | None:
    """Return the mean or sum over everything that a node squares, or takes the absolute value of."""
    name = node_name(node)
    edges = [to for to, _ in node.next_functions]
    squares = name == "AbsBackward0"
    squares |= name == "PowBackward0" and node._saved_exponent == 2
    squares |= name == "MulBackward0" and len(edges) == 2 and edges[0] is edges[1]
    mean = edges[0] if squares and edges else None
    return mean if mean is not None and node_name(mean) in ("MeanBackward0", "SumBackward0") else None
