"""The last step of a padded batch, taken for the last step of each sequence."""

from __future__ import annotations

import dis
import re
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass
from course_utils.audit.lines import Spot, frames
from course_utils.audit.sequences import LAYERS, taken_along

_ALONG = frozenset({"dropout", "layer_norm", "linear", "relu", "tanh", "add", "mul", "contiguous", "float", "to"})
_TAKING = frozenset({"__getitem__", "select", "squeeze"})
_MAKING = frozenset({"pad_sequence", "_pad_packed_sequence", "embedding", "transpose", "index_select"})
_LENGTHS = re.compile(r"len(gth)?s?(_|$)|(^|_)n_?steps$")
_TIMES = 2
_MOST = 300


class Padding(Check):
    """Follows batches that are padded at their end into recurrent layers, and looks which step is taken of them."""

    codes: ClassVar = ("padded-step",)
    functions: ClassVar = LAYERS | _ALONG | _TAKING | _MAKING

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        # By a tensor's id: the axis of time, and whether it is a layer's input, its output (filled up with zeros
        # after it), or its last state.
        self._padded: dict[int, tuple[weakref.ref[torch.Tensor], int, str]] = {}
        self._numbers: dict[Spot, set[int]] = {}
        self._passes: Counter[Spot] = Counter()
        self._filled: set[Spot] = set()  # lines that take a step of what was filled up

    def function(self, event: Op) -> None:
        name, out = event.name, event.out
        if name == "pad_sequence":
            uneven = len({len(it) for it in event.argument(0, "sequences")}) > 1
            if uneven and event.argument(3, "padding_side", "right") == "right":
                self._keep(out, int(bool(event.argument(1, "batch_first", False))), "input")
        elif name == "embedding":
            self._embedded(event)
        elif name == "_pad_packed_sequence":
            if len(event.out[1].unique()) > 1:
                self._keep(event.out[0], int(bool(event.args[2])), "filled")
        elif self._padded and event.args:
            kind, axis = self._kind(event.args[0])
            if kind == "input" or (kind == "filled" and name not in _TAKING):
                self._onward(event, axis, kind)
            elif kind and name in _TAKING and out.requires_grad and _takes_last(event, axis, kind):
                self._taken(event, kind)

    def _keep(self, tensor: Any, axis: int, kind: str) -> None:
        if len(self._padded) > _MOST:
            self._padded.clear()
        if isinstance(tensor, torch.Tensor):
            self._padded[id(tensor)] = weakref.ref(tensor), axis, kind

    def _kind(self, thing: Any) -> tuple[str, int]:
        known = self._padded.get(id(thing))
        return (known[2], known[1]) if known is not None and known[0]() is thing else ("", 0)

    def _embedded(self, event: Op) -> None:
        tokens, padding = event.argument(0, "input"), event.argument(2, "padding_idx")
        kind, axis = self._kind(tokens)
        if not kind and isinstance(padding, int) and padding >= 0 and isinstance(tokens, torch.Tensor):
            if tokens.dim() != 2 or 0 in tokens.shape:
                return
            empty = tokens == padding
            for along in (1, 0):
                if bool((empty.select(along, -1) & ~empty.select(along, 0)).any()):
                    kind, axis = "input", along
                    break
        if kind:
            self._keep(event.out, axis, "input")

    def _onward(self, event: Op, axis: int, kind: str) -> None:
        out = event.out
        if event.name in LAYERS:
            if event.args[-1] is (axis == 1) and out[0].dim() == 3:
                self._keep(out[0], axis, "output")
                self._keep(out[1], axis, "state")
        elif event.name == "transpose":
            if {event.argument(1, "dim0"), event.argument(2, "dim1")} == {0, 1}:
                self._keep(out, 1 - axis, kind)
        elif event.name == "index_select":
            if event.argument(1, "dim") == 1 - axis:
                self._keep(out, axis, kind)
        elif event.name in _ALONG and isinstance(out, torch.Tensor) and out.shape[:2] == event.args[0].shape[:2]:
            self._keep(out, axis, kind)

    def _taken(self, event: Op, kind: str) -> None:
        spot = event.spot
        if spot is not None and kind == "filled":
            self._filled.add(spot)
        if spot is not None and (kind in ("output", "filled") or _knows_lengths()):
            self._numbers.setdefault(spot, set()).update(range(event.began, event.ended))

    def pass_begins(self, event: Pass) -> None:
        if event.accumulate:
            for spot, numbers in self._numbers.items():
                if numbers:
                    self._passes[spot] += bool(numbers & event.graph.numbers)
                    numbers.clear()

    def found(self) -> Iterator[Found]:
        for spot, times in self._passes.items():
            if times >= _TIMES:
                yield self.say(
                    "padded-step",
                    spot,
                    "the last step of the padded batch is taken: for shorter sequences it lies in the padding",
                    "What a packed layer gives is filled up with zeros behind each sequence's own end. Of all but the "
                    "longest ones the last place holds nothing of the sequence."
                    if spot in self._filled
                    else "The layer has run on over the padding, and what it held at the end of a sequence has faded "
                    "by then, the more the shorter the sequence is.",
                    "out[torch.arange(len(out)), lengths - 1]  # or pack_padded_sequence(..., enforce_sorted=False) "
                    "before the layer, and its last state",
                    certain=False,
                    times=times,
                )


def _takes_last(event: Op, axis: int, kind: str) -> bool:
    """Say whether a function takes the last step of an output, or the state of one layer."""
    if kind == "state":
        return event.name == "squeeze" or (len(event.args) > 1 and event.args[1] in (-1, 0))
    taken = taken_along(event, axis)
    return taken is not None and taken.place == -1


def _knows_lengths() -> bool:
    """Say whether the function that is running was given lengths, and nothing in it reads them."""
    frame = next(frames(), None)
    code = frame.f_code if frame is not None else None
    if code is None:
        return False
    given = [name for name in code.co_varnames[: code.co_argcount] if _LENGTHS.search(name)]
    return bool(given) and not any(_reads(code, name) for name in given)


def _reads(code: Any, name: str) -> bool:
    return any(it.opname.startswith("LOAD") and it.argval == name for it in dis.get_instructions(code))
