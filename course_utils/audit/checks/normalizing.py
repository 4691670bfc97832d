"""A softmax along one axis, whose result is used along another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.classes import made_near
from course_utils.audit.events import Call, Op, before, node_behind, number_of, signed
from course_utils.audit.lines import Spot, here
from course_utils.audit.source import text_at
from course_utils.graph.trace import LiveNode, node_name

_PRODUCTS = frozenset({"matmul", "bmm"})
_SOFT = frozenset({"SoftmaxBackward0", "LogSoftmaxBackward0"})
_SAME = frozenset({"MulBackward0", "NativeDropoutBackward0", "CloneBackward0", "ToCopyBackward0", "ExpandBackward0"})
_PASSED = _SAME | {"UnsqueezeBackward0", "TransposeBackward0", "PermuteBackward0"}
_DEEP = 8
_TIMES = 2
_LOOKS = 4
_MOST = 100


class Normalizing(Check):
    """Along which axis weights sum to 1, and along which they are summed, or a class is picked."""

    codes: ClassVar = ("softmax-axis",)
    functions: ClassVar = _PRODUCTS | {"sum", "nll_loss", "kl_div"}

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._times: Counter[tuple[Spot, str]] = Counter()
        self._looked: Counter[tuple[Any, ...]] = Counter()  # by a function and the shapes that it was given
        # Since the last call: how many samples, where, and along which other axis there is a sum, or what else is.
        self._sums: list[tuple[int, Spot | None, str]] = []

    def function(self, event: Op) -> None:
        one = event.args[0] if event.args else event.kwargs.get("input")
        if not isinstance(one, torch.Tensor) or not one.requires_grad:
            return
        kind = event.name, one.shape, event.began - self.clock.marks[-1]
        if self._looked[kind] >= _LOOKS or len(self._looked) > _MOST * 10:
            return
        self._looked[kind] += 1
        if event.name in _PRODUCTS:
            self._product(one, event.argument(1, "other" if event.name == "matmul" else "mat2"))
        elif event.name == "nll_loss":
            self._picked(one)
        elif event.name == "kl_div":
            node, axis = _normalized(one)
            unlike = one.dim() == 2 and one.shape[0] != one.shape[1] > 1
            if node is not None and axis == 0 and unlike and len(self._sums) < _MOST:
                self._sums.append((one.shape[0], self._where(node), "the classes of each sample are compared"))
        else:
            self._sum(one, event.argument(1, "dim"))

    def _product(self, one: torch.Tensor, other: Any) -> None:
        if not isinstance(other, torch.Tensor) or one.dim() < 2 or other.dim() < 2:
            return
        for weights in (one, other):
            node, axis = _normalized(weights)
            if node is None or weights.shape[axis] < 2:
                continue
            rows = weights.dim() - 2
            both = one.dim() == other.dim() and one.shape[axis] == other.shape[axis]
            square = weights is one and one.dim() >= 3 and one.shape[-1] == one.shape[-2]
            if (axis < rows and both) or (axis == rows and square):
                self._count(node, f"axis {axis} of {weights.dim()}, and the product sums over another")

    def _picked(self, scores: torch.Tensor) -> None:
        node, axis = _normalized(scores)
        if node is not None and axis != 1 and scores.dim() >= 2 and scores.shape[0] != scores.shape[1]:
            self._count(node, f"axis {axis}, and the loss picks a class along axis 1")

    def _sum(self, products: torch.Tensor, dim: Any) -> None:
        product = node_behind(products)
        if not isinstance(dim, int) or products.dim() < 2 or product is None or node_name(product) != "MulBackward0":
            return
        for to, _ in product.next_functions:
            node, axis = _normalized_by(to, products.dim())
            if (
                node is not None
                and axis == 0
                and dim % products.dim() != 0
                and products.shape[0] > 1
                and len(self._sums) < _MOST
            ):
                self._sums.append((products.shape[0], self._where(node), "the sum goes over another axis"))

    def called(self, event: Call) -> None:
        """A model was called: now it is known which axis holds its samples."""
        given, out = event.given, event.out
        if out is None:  # as of a teacher: what it gives says as much, and was not kept
            return
        sums, self._sums = self._sums, []
        for count, spot, words in sums:
            sizes = [it.shape[0] for it in (given, out) if it is not None and it.dim()]
            if spot is not None and sizes == [count, count]:
                self._times[spot, f"axis 0, the samples of the batch, and {words}"] += 1

    def _count(self, node: LiveNode, words: str) -> None:
        spot = self._where(node)
        if spot is not None:
            self._times[spot, words] += 1

    def _where(self, node: LiveNode) -> Spot | None:
        """Return the line of a softmax; for a module the line that makes it."""
        spot: Spot | None = self.recorder.lines.of(number_of(node)) or here()
        if spot is None or "softmax" in text_at(spot).lower():
            return spot
        return made_near(spot, r"\b(Log)?Softmax$")

    def found(self) -> Iterator[Found]:
        told: set[Spot] = set()
        for (spot, words), times in self._times.items():
            if times >= _TIMES and spot not in told:
                told.add(spot)
                yield self.say(
                    "softmax-axis",
                    spot,
                    f"the softmax runs along {words}",
                    "What is summed, picked or compared afterwards does not add up to 1: each number depends on others "
                    "that it has nothing to do with, as the other samples of its batch.",
                    "softmax(dim=-1)  # the axis of what is chosen among: keys, time steps, classes",
                    level="likely",
                    certain=False,
                    times=sum(often for (place, _), often in self._times.items() if place == spot),
                )


def _normalized(tensor: torch.Tensor) -> tuple[LiveNode | None, int]:
    return _normalized_by(node_behind(tensor), tensor.dim())


def _normalized_by(node: LiveNode | None, dims: int) -> tuple[LiveNode | None, int]:
    """Return the softmax that a value comes from with nothing but its axes moved, and which of the axes sums to 1."""
    passed: list[LiveNode] = []
    while node is not None and (name := node_name(node)) not in _SOFT:
        factor = name == "MulBackward0" and before(node, 1) is not None  # by more than a mask: no longer a softmax
        if len(passed) == _DEEP or name not in _PASSED or factor:
            return None, 0
        passed.append(node)
        node = before(node)
    if node is None:
        return None, 0
    count = node._raw_saved_result.data.dim()
    axis = _place(node._saved_dim, count)
    for step in reversed(passed):
        name = node_name(step)
        if name == "UnsqueezeBackward0":
            count += 1
            axis += axis >= _place(step._saved_dim, count)
        elif name == "TransposeBackward0":
            ends = [_place(step._saved_dim0, count), _place(step._saved_dim1, count)]
            axis = ends[1 - ends.index(axis)] if axis in ends else axis
        elif name == "PermuteBackward0":
            axis = [_place(at, count) for at in step._saved_dims].index(axis)
    return (node, axis) if count == dims else (None, 0)


def _place(saved: int, count: int) -> int:
    """Return an axis as it is counted from the front."""
    return signed(saved) % count
