"""Scores and targets that are flattened before they are compared, one step by step and the other sample by sample."""

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

    def function(self, event: Op) -> None:
        if event.name in _LOSSES:
            self._compare(event)
        elif event.name in _FLATTENING:
            given, out = event.argument(0, "input"), event.out
            if not isinstance(given, torch.Tensor) or not isinstance(out, torch.Tensor) or out.requires_grad:
                return
            if given.dim() in (2, 3) and out.dim() < given.dim():
                self._flat.append((weakref.ref(out), tuple(given.shape)))

    def _compare(self, event: Op) -> None:
        scores, target = event.argument(0, "input"), event.argument(1, "target")
        before = next((shape for ref, shape in self._flat if ref() is target), None)
        node = node_behind(scores) if before is not None else None
        if before is None or node is None or not node_name(node).startswith(("View", "UnsafeView", "ReshapeAlias")):
            return
        shape = tuple(int(size) for size in getattr(node, "_saved_self_sym_sizes", ()))
        if len(shape) in (2, 3) and shape[0] != shape[1] and shape[:2] == before[1::-1] and scores.dim() < len(shape):
            spot = event.spot
            if spot is not None:
                self.crossed[Pair(spot, shape, before)] += 1
