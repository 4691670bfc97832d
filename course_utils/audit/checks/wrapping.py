"""Losses that were made anew, so that a pass ends in them."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass
from course_utils.audit.lines import Spot, here, name_of
from course_utils.audit.source import assigned

_MAKERS = frozenset({"tensor", "as_tensor", "requires_grad_", "requires_grad.__set__", "clone", "from_numpy"})


class Wrapping(Check):
    """A pass that reaches no parameter, only a number that stands where the loss was."""

    codes: ClassVar = ("wrapped-loss",)
    functions: ClassVar = _MAKERS

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._made: dict[int, tuple[weakref.ref[torch.Tensor], Spot | None]] = {}
        self._times: Counter[Spot | None] = Counter()
        self._keys: set[int] = set()

    def function(self, event: Op) -> None:
        tensor = event.args[0] if event.name == "requires_grad.__set__" else event.out
        if isinstance(tensor, torch.Tensor) and tensor.is_leaf and tensor.requires_grad and tensor.numel() == 1:
            if len(self._made) > 200:
                self._made.clear()
            self._made[id(tensor)] = weakref.ref(tensor), here()

    def pass_begins(self, event: Pass) -> None:
        if not event.accumulate or len(event.outputs) != 1 or not isinstance(event.outputs[0], torch.Tensor):
            return
        root = event.outputs[0]
        leaf = root if root.grad_fn is None else self._only_leaf(event)
        if leaf is None or isinstance(leaf, torch.nn.Parameter) or leaf.numel() != 1 or not leaf.requires_grad:
            return
        slot = self.book.find(leaf)
        if slot is not None and slot.key in self.book.held():
            return
        made = self._made.get(id(leaf))
        spot = made[1] if made is not None and made[0]() is leaf else None
        if spot is None and event.spot is not None:
            name = name_of(leaf)
            spot = assigned(event.spot, name) if name else None
        if leaf is root or made is not None:
            self._times[spot or event.spot] += 1

    def _only_leaf(self, event: Pass) -> torch.Tensor | None:
        """Return the one leaf of a small graph: a loss made anew and then scaled or averaged."""
        if self.recorder.operations is None or len(event.graph.inner) > 8 or len(event.graph.leaves) != 1:
            return None
        return event.graph.leaves[0][1]

    def found(self) -> Iterator[Found]:
        trained = any(trainer.steps >= 2 for trainer in self.book.trainers.values())
        for spot, times in self._times.items():
            if times >= 2 and trained:
                yield self.say(
                    "wrapped-loss",
                    spot,
                    "the loss was made anew here: the pass ends in it and reaches no parameter",
                    "A tensor made from a number, or detached and told to require a gradient, has no graph. backward() "
                    "gives the number itself a gradient, raises nothing, and trains nothing.",
                    "loss = criterion(model(x), y)  # call backward() on this",
                    times=times,
                )
