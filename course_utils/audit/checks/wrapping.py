"""Losses that were made anew, so that a pass ends in them."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass
from course_utils.audit.lines import Spot, name_of
from course_utils.audit.source import assigned

_MAKERS = frozenset({"tensor", "as_tensor", "requires_grad_", "requires_grad.__set__", "clone", "from_numpy"})

# Nodes between a loss made anew and the tensor that a pass begins at.
_SMALL = 8


class Wrapping(Check):
    """A pass that reaches no parameter, only a number that stands where the loss was."""

    codes: ClassVar = ("wrapped-loss",)
    functions: ClassVar = _MAKERS

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._made: dict[int, tuple[weakref.ref[torch.Tensor], Spot | None, int]] = {}
        self._times: Counter[Spot | None] = Counter()

    def function(self, event: Op) -> None:
        tensor = event.args[0] if event.name == "requires_grad.__set__" else event.out
        if isinstance(tensor, torch.Tensor) and tensor.is_leaf and tensor.requires_grad:
            if len(self._made) > 200:
                self._made.clear()
            self._made[id(tensor)] = weakref.ref(tensor), event.spot, self.clock.passes

    def pass_begins(self, event: Pass) -> None:
        if not event.accumulate or len(event.outputs) != 1 or not isinstance(event.outputs[0], torch.Tensor):
            return
        root = event.outputs[0]
        if root.grad_fn is None:
            if root.requires_grad and not self._is_known(root):
                self._count(root, event)
        elif self.recorder.operations is not None and len(event.graph.inner) <= _SMALL:
            leaves = [leaf for _, leaf in event.graph.leaves]
            single = all(leaf.dim() <= 1 for leaf in leaves)  # what has more is a weight or an input
            if (
                leaves
                and single
                and not any(map(self._is_known, leaves))
                and all(self._is_new(leaf) for leaf in leaves)
            ):
                self._count(leaves[0], event)

    def _is_known(self, leaf: torch.Tensor) -> bool:
        """Say whether a leaf is a parameter, or held by an optimizer."""
        slot = self.book.find(leaf)
        return isinstance(leaf, torch.nn.Parameter) or (slot is not None and slot.key in self.book.held())

    def _is_new(self, leaf: torch.Tensor) -> bool:
        """Say whether a leaf was made since the last pass."""
        made = self._made.get(id(leaf))
        return made is not None and made[0]() is leaf and made[2] >= self.clock.passes - 1

    def _count(self, leaf: torch.Tensor, event: Pass) -> None:
        made = self._made.get(id(leaf))
        spot = made[1] if made is not None and made[0]() is leaf else None
        if spot is None and event.spot is not None:
            name = name_of(leaf)
            spot = assigned(event.spot, name) if name else None
        self._times[spot or event.spot] += 1

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
