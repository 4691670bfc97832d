"""Scores and targets that are flattened before they are compared, and come in unlike orders.

One goes step by step and the other sample by sample; or the classes of scores stand before rows and columns.
"""

from __future__ import annotations

import weakref
from collections import Counter, deque
from dataclasses import dataclass

import torch

from course_utils.audit.events import Op, node_behind
from course_utils.audit.lines import Spot
from course_utils.graph.trace import node_name

_FLATTENING = frozenset({"view", "reshape", "flatten"})
_LOSSES = frozenset({"cross_entropy", "nll_loss", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss"})
_KEPT = 8


@dataclass(frozen=True)
class Pair:
    """A line that compares, and the shapes that both sides had before they were flattened."""

    spot: Spot
    scores: tuple[int, ...]
    target: tuple[int, ...]


class FlatPairs:
    """Losses of flattened tensors whose first two axes had changed places."""

    functions = _FLATTENING | _LOSSES

    def __init__(self) -> None:
        self._flat: deque[tuple[weakref.ref[torch.Tensor], tuple[int, ...]]] = deque(maxlen=_KEPT)
        self.crossed: Counter[Pair] = Counter()
        self.classes: Counter[Pair] = Counter()  # whose classes stand second, and were read as if they stood last

    def function(self, event: Op) -> None:
        if event.name in _LOSSES:
            self._compare(event)
        elif event.name in _FLATTENING:
            given, out = event.argument(0, "input"), event.out
            if not isinstance(given, torch.Tensor) or not isinstance(out, torch.Tensor) or out.requires_grad:
                return
            if given.dim() in (2, 3, 4) and out.dim() < given.dim():
                self._flat.append((weakref.ref(out), tuple(given.shape)))

    def _compare(self, event: Op) -> None:
        scores, target = event.argument(0, "input"), event.argument(1, "target")
        before = next((shape for ref, shape in self._flat if ref() is target), None)
        node = node_behind(scores) if before is not None else None
        if before is None or node is None or not node_name(node).startswith(("View", "UnsafeView", "ReshapeAlias")):
            return
        shape = tuple(int(size) for size in getattr(node, "_saved_self_sym_sizes", ()))
        spot = event.spot
        if spot is None or scores.dim() >= len(shape):
            return
        pair = Pair(spot, shape, before)
        self.crossed[pair] += len(shape) in (2, 3) and shape[0] != shape[1] and shape[:2] == before[1::-1]
        places = len(before) >= 2 and shape == (before[0], scores.shape[-1], *before[1:])
        self.classes[pair] += places and scores.dim() == 2 and shape != (*before, scores.shape[-1])
