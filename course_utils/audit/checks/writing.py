"""Values changed behind autograd's back, and a detach() whose result is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass, Step, number_of, sequence_now
from course_utils.audit.lines import Spot
from course_utils.audit.source import is_discarded
from course_utils.graph.saved import kept

_MOST = 500


class Writing(Check):
    """Writes through `.data` into what a graph has saved, and calls of detach() for nothing."""

    codes: ClassVar = ("data-write", "discarded-detach")
    functions: ClassVar = frozenset({"*"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._aliases: dict[int, None] = {}  # addresses of memory that a `.data` gave access to
        self._writes: dict[int, tuple[Spot | None, int]] = {}  # by address: the line, and when
        self._hits: Counter[Spot | None] = Counter()
        self._names: dict[Spot | None, str] = {}
        self._discarded: Counter[Spot] = Counter()

    def function(self, event: Op) -> None:
        name = event.name
        tensor = event.args[0] if event.args else None
        if not isinstance(tensor, torch.Tensor):
            return
        if name == "data.__get__":
            if len(self._aliases) > _MOST:
                self._aliases.clear()
            self._aliases[_address(tensor)] = None
        elif name == "data.__set__":
            self._writes[_address(tensor)] = event.spot, sequence_now()
        elif name == "detach":
            spot = event.spot
            if spot is not None and _is_lost(spot):
                self._discarded[spot] += 1
        elif self._aliases and _writes_in_place(name) and not tensor.requires_grad:
            address = _address(tensor)
            if address in self._aliases and len(self._writes) < _MOST:
                self._writes[address] = event.spot, sequence_now()

    def pass_begins(self, event: Pass) -> None:
        if not self._writes or self.recorder.operations is None:
            return
        for node in event.graph.inner:
            number = number_of(node)
            for _, state, tensor in kept(node):
                if tensor is None or state not in ("held", "modified"):
                    continue
                write = self._writes.get(_address(tensor))
                if write is not None and number < write[1]:
                    self._hits[write[0]] += 1
        self._writes.clear()

    def step_ended(self, event: Step) -> None:
        self._writes.clear()

    def found(self) -> Iterator[Found]:
        for spot, times in self._hits.items():
            yield self.say(
                "data-write",
                spot,
                "a write through .data changed what a recorded operation had saved for backward",
                "The pass computes the gradient with the new values, for a forward that used the old ones. .data hides "
                "the write from PyTorch's version counter, so nothing raises: the gradient is wrong.",
                "h = h.clamp(...)  # a new tensor; or write before the forward uses it",
                times=times,
            )
        for spot, times in self._discarded.items():
            yield self.say(
                "discarded-detach",
                spot,
                "detach() returns a new tensor, and nobody takes it",
                "detach() does not change the tensor that it is called on: its graph is still there after this line.",
                "h = h.detach()  # or h.detach_()",
                times=times,
            )


def _address(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return -1


@cache
def _writes_in_place(name: str) -> bool:
    if name in ("__setitem__", "copy_"):
        return True
    return (name.endswith("_") and not name.endswith("__")) or (name.startswith("__i") and name != "__invert__")


@cache
def _is_lost(spot: Spot) -> bool:
    return is_discarded(spot, "detach")
