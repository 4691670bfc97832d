"""A language model that is to give back the token that it has just read: the targets were not moved on by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

import torch

from course_utils.audit.check import Found
from course_utils.audit.events import PassGraph, saved_value
from course_utils.audit.lines import Spot, here
from course_utils.audit.positions import LEAST, TIMES, Looking, is_harmless, slope_at
from course_utils.graph.trace import LiveNode, node_name, walk

_POSITIONS = 4  # of a sequence, at least


class Shifts(Looking):
    """Looks for targets that are the model's own input, where each position sees itself and those before it."""

    codes: ClassVar = ("not-shifted",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self._same: Counter[Spot] = Counter()

    def look(self, scores: torch.Tensor, target: torch.Tensor) -> None:
        spot = here() if scores.dim() in (2, 3) and _gives_back(scores, target) else None
        if spot is not None:
            self._same[spot] += 1

    def found(self) -> Iterator[Found]:
        for spot, times in self._same.items():
            if times >= TIMES:
                yield self.say(
                    "not-shifted",
                    spot,
                    "the target at each position is the token that the model has just read there",
                    "The scores of a position depend on its own token and on those before it, and on none after it: so "
                    "the model looks back, as one that is to predict what comes next. These targets teach it to copy.",
                    "F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())  # the next token",
                    times=times,
                )


def _gives_back(scores: torch.Tensor, target: torch.Tensor) -> bool:
    """Say whether targets are the tokens that an embedding read, and the scores look back only."""
    inner = PassGraph(walk([scores.grad_fn])).inner
    for node in inner:
        tokens = saved_value(node, "indices") if node_name(node) == "EmbeddingBackward0" else None
        wanted = _same_as(tokens, target) if tokens is not None else None
        if tokens is not None and wanted is not None:
            return all(map(is_harmless, inner)) and _looks_back(scores, node, tokens, wanted)
    return False


def _same_as(tokens: torch.Tensor, target: torch.Tensor) -> torch.Tensor | None:
    """Return targets in the shape of the tokens, batch first, where both are the same; the last may be missing."""
    if tokens.dim() != 2 or tokens.shape[1] < _POSITIONS:
        return None
    rows, length = tokens.shape
    many = target.numel() // max(rows, 1)
    if target.numel() not in (rows * length, rows * (length - 1)) or len(torch.unique(tokens)) <= 2:
        return None
    wanted = target.reshape(rows, many)
    counts = wanted >= 0  # others are left out of the loss
    same = bool((wanted == tokens[:, :many])[counts].all()) and int(counts.sum()) * 2 >= counts.numel()
    return wanted if same else None


def _looks_back(scores: torch.Tensor, node: LiveNode, tokens: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Say whether scores depend on their own token, on earlier ones, and on none later. Nothing is changed."""
    many = wanted.shape[1]
    earlier = 0
    for at in sorted({1, many // 2, many - 2}):
        row = next((it for it in range(len(wanted)) if int(wanted[it, at]) >= 0), None)
        if row is None:
            return False
        slope = slope_at(scores, (row, at), wanted.shape, node, tokens)
        if slope is None:
            return False
        sizes = slope[row].norm(dim=-1)
        own = float(sizes[at])
        if not own > 0 or float(sizes[at + 1 :].max()) > LEAST * own:
            return False
        earlier += float(sizes[:at].max()) > LEAST * own
    return earlier > 0
