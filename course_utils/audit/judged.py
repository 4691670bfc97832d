"""Which way passes push the scores that one model gives to what another made, with and without the other's graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.hooks import RemovableHandle

from course_utils.audit.events import Call, Pass, is_transforming, number_of

_MOST = 32
_CLEAR = 0.5  # so much of the size of a gradient must be of one sign


class Score(NamedTuple):
    """The scores of one model, by its key: of what another model made, cut from the graph of that, or with it."""

    model: int
    cut: bool


class Judged:
    """The sign of the gradient at each kind of scores since it was last forgotten."""

    def __init__(self) -> None:
        self.signs: dict[Score, int] = {}
        # Outputs, by their storage, which may outlive them: whether it is still the same one, and the model's key.
        self._made: dict[int, tuple[StorageWeakRef, int]] = {}
        self._scores: dict[int, Score] = {}  # by the number of the node that made them
        self._handles: list[RemovableHandle] = []

    def called(self, event: Call) -> None:
        given, out = event.given, event.out
        if out is None or given is None or event.recorded is None or is_transforming():
            return
        if given.layout != torch.strided or out.layout != torch.strided:
            return  # without a storage
        made = self._made.get(given.untyped_storage()._cdata)
        if made is not None and not made[0].expired() and made[1] != event.model.key:
            self._scores[event.recorded] = Score(event.model.key, not given.requires_grad)
        made_now = StorageWeakRef(out.untyped_storage())
        self._made[made_now.cdata] = made_now, event.model.key
        for kept in (self._made, self._scores):
            while len(kept) > _MOST:
                kept.pop(next(iter(kept)))

    def pass_begins(self, event: Pass) -> None:
        for node in event.graph.inner if self._scores and event.accumulate else ():
            score = self._scores.get(number_of(node))
            if score is not None:
                self._handles.append(node.register_prehook(self._looking(score)))

    def _looking(self, score: Score) -> Callable[[Any], None]:
        def look(incoming: Any) -> None:
            grad = next((it for it in incoming if it is not None), None)
            if grad is not None:
                total, size = float(grad.detach().sum()), float(grad.detach().abs().sum())
                clear = size > 0 and abs(total) > _CLEAR * size
                self.signs[score] = (1 if total > 0 else -1) if clear else 0

        return look

    def pass_ended(self, event: Pass) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
