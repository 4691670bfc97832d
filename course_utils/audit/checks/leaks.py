"""A language model that sees the token that it has to predict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

import torch

from course_utils.audit.check import Found
from course_utils.audit.classes import made_near
from course_utils.audit.events import Op, PassGraph, number_of, saved_value
from course_utils.audit.lines import Spot
from course_utils.audit.positions import LEAST, LOSSES, MOST, TIMES, Looking, is_harmless, slope_at
from course_utils.audit.sequences import LAYERS
from course_utils.audit.source import text_at
from course_utils.graph.trace import LiveNode, node_name, walk

_POSITIONS = 3  # of the sequence are tried

_MIXING = (
    frozenset({"scaled_dot_product_attention", "multi_head_attention_forward"}),
    LAYERS,
    frozenset({"softmax"}),
    frozenset({"conv1d", "conv2d", "flip", "cumsum", "mean", "sum", "matmul", "__matmul__", "bmm", "einsum"}),
)


class Leaks(Looking):
    """Looks whether the scores at one position depend on the next token, where that is the target."""

    codes: ClassVar = ("sees-target",)
    functions: ClassVar = LOSSES.union(*_MIXING)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self._leaked: Counter[Spot] = Counter()
        self._mixed: dict[int, tuple[str, int]] = {}  # by the number after an operation: its name, and the one before

    def function(self, event: Op) -> None:
        if event.name in LOSSES:
            super().function(event)
        elif event.ended > event.began and len(self._looked) < MOST:
            if len(self._mixed) > MOST * 10:
                self._mixed.clear()
            self._mixed[event.ended] = event.name, event.began

    def look(self, scores: torch.Tensor, target: torch.Tensor) -> None:
        inner = PassGraph(walk([scores.grad_fn])).inner
        read = [(node, saved_value(node, "indices")) for node in inner if node_name(node) == "EmbeddingBackward0"]
        found = [(node, it, moved) for node, it in read if it is not None and (moved := _moved_on(it, target))]
        if not found or not all(map(is_harmless, inner)):
            return
        # A decoder's input is one shorter than what its encoder is given: the shortest is the one that predicts.
        node, tokens, (axis, wanted) = min(found, key=lambda it: it[1].numel())
        spot = self._where(inner) if _depends(scores, node, tokens, wanted, axis) else None
        if spot is not None:
            self._leaked[spot] += 1

    def _where(self, inner: list[LiveNode]) -> Spot | None:
        """Return the line of what lets positions see each other: attention, a layer that runs both ways."""
        numbers = {number_of(node) for node in inner}
        for kinds in _MIXING:
            for ended, (name, began) in self._mixed.items():
                if name in kinds and numbers & set(range(began, ended)):
                    spot: Spot | None = self.recorder.lines.of(began)
                    if spot is not None and name in LAYERS:
                        return made_near(spot, r"\b(LSTM|GRU|RNN)$")
                    if spot is not None and name.startswith("conv") and "conv" not in text_at(spot).lower():
                        return made_near(spot, r"\bConv[12]d$")
                    return spot
        return None

    def found(self) -> Iterator[Found]:
        for spot, times in self._leaked.items():
            if times >= TIMES:
                yield self.say(
                    "sees-target",
                    spot,
                    "the scores at each position depend on the next token, and that token is the target",
                    "The targets are the inputs moved on by one. What this line computes lets a position see those "
                    "after it, so the model learns to copy: the loss falls, and nothing can be generated with it.",
                    "is_causal=True  # or a mask of torch.triu(ones, 1); a convolution padded in front only; one "
                    "direction",
                    times=times,
                )


def _moved_on(tokens: torch.Tensor, target: torch.Tensor) -> tuple[int, torch.Tensor] | None:
    """Return the axis along which a target is its tokens moved on by one, and it in their shape; else None."""
    for axis in (1, 0) if tokens.dim() == 2 else ():
        length, rest = tokens.shape[axis], tokens.shape[1 - axis]
        if length <= _POSITIONS or target.numel() not in (rest * length, rest * (length - 1)):
            continue
        many = target.numel() // rest
        wanted = target.reshape((rest, many) if axis == 1 else (many, rest))
        given, scored = tokens.narrow(axis, 1, length - 1), wanted.narrow(axis, 0, length - 1)
        counts = scored >= 0  # others are left out of the loss
        same = bool((scored == given)[counts].all()) and int(counts.sum()) >= _POSITIONS
        if same and not torch.equal(wanted, tokens) and len(torch.unique(given)) > 2:
            return axis, wanted
    return None


def _depends(scores: torch.Tensor, node: LiveNode, tokens: torch.Tensor, wanted: torch.Tensor, axis: int) -> bool:
    """Say whether scores of some positions have a gradient at the embedding of the next one. Nothing is changed."""
    last = tokens.shape[axis] - 2
    looks = []
    for at in sorted({0, last // 2, last}):
        row = next((it for it in range(tokens.shape[1 - axis]) if int(wanted[_at(axis, it, at)]) >= 0), None)
        if row is None or scores.dim() not in (2, 3):
            continue
        own, later = _at(axis, row, at), _at(axis, row, at + 1)
        slope = slope_at(scores, own, wanted.shape, node, tokens)
        if slope is None:
            return False
        looks.append(float(slope[later].norm()) > LEAST * float(slope[own].norm()))
    return len(looks) >= 2 and all(looks)


def _at(axis: int, row: int, position: int) -> tuple[int, int]:
    return (row, position) if axis == 1 else (position, row)
