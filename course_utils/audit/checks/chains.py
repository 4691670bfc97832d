"""Layers that stand one behind the other with nothing between them that is not linear, too."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass, before, number_of, through_views
from course_utils.audit.lines import Spot
from course_utils.audit.source import text_at, tree_of
from course_utils.explain.source import called
from course_utils.graph.trace import LiveNode, node_name

# Where a layer has its input and its weight among the edges of its node.
_LAYERS = {"AddmmBackward0": (1, 2), "MmBackward0": (0, 1), "ConvolutionBackward0": (0, 1)}
_MIXED = ("BmmBackward0", "ScaledDotProduct")  # attention: what it mixed
_LINEAR = ("Linear", "Conv1d", "Conv2d", "Conv3d")
_PASSES, _MOST = 2, 2000  # passes that are looked at, and nodes of a graph


class Chains(Check):
    """Which layers read another one's output as it is, and nobody else reads that."""

    codes: ClassVar = ("no-nonlinearity",)
    functions: ClassVar = frozenset({"dropout"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._passes = 0
        self._dropped: set[int] = set()  # the numbers of nodes that drop: in evaluation they are not there
        self._lines: Counter[tuple[Spot, tuple[int, ...]]] = Counter()

    def function(self, event: Op) -> None:
        if self._passes < _PASSES and len(self._dropped) < _MOST:
            self._dropped.update(range(event.began, event.ended))

    def pass_begins(self, event: Pass) -> None:
        if self.recorder.operations is None or not event.accumulate or self._passes >= _PASSES:
            return
        self._passes += 1
        if len(event.graph.inner) > _MOST:
            return
        inner: list[LiveNode] = [node for node in event.graph.inner if through_views(node) is node]
        layers = [node for node in inner if node_name(node) in _LAYERS]
        readers = Counter(id(through_views(to)) for node in inner for to, _ in node.next_functions)
        for node in layers:
            first = self._behind(_input(node))
            one, other = _weight(first), _weight(node)
            if one is None or other is None or one is other or readers[id(first)] != 1:
                continue
            # A few numbers between two large layers are a bound on the rank, and meant.
            spot = self.recorder.lines.of(number_of(first))
            # What attention mixed is brought together by a layer of its own, whatever comes next.
            is_mixed = node_name(through_views(_input(first))).startswith(_MIXED)
            if one.shape[0] >= min(one.shape[1], other.shape[0]) and spot is not None and not is_mixed:
                self._lines[spot, tuple(one.shape[:2])] += 1

    def _behind(self, node: LiveNode | None) -> LiveNode | None:
        """Return the node that made something, before views and dropout."""
        found: LiveNode = through_views(node)
        while found is not None and number_of(found) in self._dropped and node_name(found) not in _LAYERS:
            found = through_views(next((to for to, _ in found.next_functions if to is not None), None))
        return found

    def found(self) -> Iterator[Found]:
        told: set[Spot] = set()
        for (called_at, shape), times in self._lines.items():
            spot = called_at if "self." in text_at(called_at) else _display(called_at) or called_at
            if times < _PASSES or spot in told:
                continue
            told.add(spot)
            yield self.say(
                "no-nonlinearity",
                spot,
                f"the next layer reads these {shape[0]} numbers as they are: there is no nonlinearity between the two",
                "Two linear layers, one behind the other, compute what one linear layer computes. The second adds "
                "parameters, and no function that the model could not have without it.",
                "x = torch.relu(self.first(x))  # between the two, or one layer in place of both",
                certain=False,
                times=times,
            )


def _input(layer: LiveNode) -> LiveNode | None:
    return before(layer, _LAYERS[node_name(layer)][0])


def _weight(node: LiveNode | None) -> torch.Tensor | None:
    """Return the parameter that a layer multiplies by, if it is one that learns and no convolution in groups."""
    name = node_name(node) if node is not None else ""
    if node is None or name not in _LAYERS:
        return None
    if name == "ConvolutionBackward0" and (node._saved_groups > 1 or node._saved_transposed):
        return None
    leaf = through_views(before(node, _LAYERS[name][1]))
    found = getattr(leaf, "variable", None)
    return found if isinstance(found, torch.nn.Parameter) else None


def _display(spot: Spot) -> Spot | None:
    """Return the line of a Sequential of the file that has two linear layers with nothing but dropout between."""
    tree = tree_of(spot.file)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Call) and called(node) == "Sequential":
            kinds = [(called(it), it.lineno) for it in node.args if "Dropout" not in called(it)]
            for (one, line), (other, _) in pairwise(kinds):
                if one in _LINEAR and other in _LINEAR:
                    return Spot(spot.file, line)
    return None
