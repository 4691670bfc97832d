"""How weights were filled before the first pass: all alike, or over a row that was to stay zero."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import nn

from course_utils.audit.book import Slot, sampled
from course_utils.audit.check import Check, Found
from course_utils.audit.classes import assigned_anywhere
from course_utils.audit.events import Op, Pass
from course_utils.audit.lines import Spot

_RANDOM = frozenset(
    {
        *("normal_", "uniform_", "trunc_normal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_"),
        *("kaiming_normal_", "orthogonal_", "sparse_"),
    }
)
_SAME = frozenset({"fill_", "zero_", "constant_", "ones_", "zeros_"})
_ADDED = frozenset({"sum", "mean"})
_PASSES = 3
_SPREAD = 0.01  # of how far a weight has moved: units that are so near have moved as one
_LOOKS = 4
_MOST = 500


class Filling(Check):
    """The lines that filled whole weights, units that are alike to the end, and padding rows that are not zero."""

    codes: ClassVar = ("units-alike", "padding-row")
    functions: ClassVar = _RANDOM | _SAME | _ADDED | {"embedding"}

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._filled: dict[tuple[int, int], tuple[Spot | None, str]] = {}  # by address and size: the last line
        self._padded: dict[int, int] = {}  # by a table's address: looks that found padding
        self._rows: tuple[weakref.ref[torch.Tensor] | None, int] = (None, 0)  # the last rows with padding, whose
        self._added: set[int] = set()  # tables whose rows were added up, padding among them

    def function(self, event: Op) -> None:
        if event.name == "embedding":
            self._look_up(event)
            return
        if event.name in _ADDED:
            rows = self._rows[0]() if self._rows[0] is not None else None
            if rows is not None and event.args and event.args[0] is rows:
                self._added.add(self._rows[1])
            return
        tensor = event.argument(0, "tensor")
        if isinstance(tensor, torch.Tensor) and tensor.dim() > 1 and not self.clock.steps:
            if len(self._filled) >= _MOST:
                self._filled.clear()
            self._filled[_place(tensor)] = event.spot, event.name

    def pass_ended(self, event: Pass) -> None:
        for slot in event.received:
            slot.remember()

    def _look_up(self, event: Op) -> None:
        tokens, table, padding = (event.argument(*it) for it in ((0, "input"), (1, "weight"), (2, "padding_idx")))
        if isinstance(padding, int) and isinstance(table, torch.Tensor) and table.requires_grad:
            times = self._padded.get(table.data_ptr(), 0)
            if times < _LOOKS and isinstance(tokens, torch.Tensor):
                there = bool((tokens == padding % len(table)).any())
                self._padded[table.data_ptr()] = times + there
                self._rows = (weakref.ref(event.out), table.data_ptr()) if there else (None, 0)

    def found(self) -> Iterator[Found]:
        told: set[Spot | None] = set()
        for model in self.book.models.values():
            module = model.ref()
            if module is None:
                continue
            weights = [slot for slot in model.slots if len(slot.shape) > 1 and slot.received >= _PASSES]
            for at, slot in enumerate(weights):
                if slot.shape[0] > 1 and _is_alike(slot, 0) and any(_reads(it, slot) for it in weights[at + 1 :]):
                    spot = self._line(slot, module)
                    if spot is not None and spot not in told:
                        told.add(spot)
                        yield self._alike(slot, spot)
            yield from self._padding_rows(module, told)

    def _line(self, slot: Slot, module: nn.Module) -> Spot | None:
        """Return the line that filled a weight, else the one that made it."""
        tensor = slot.tensor
        spot = self._filled.get(_place(tensor), (None, ""))[0] if tensor is not None else None
        for part in module.modules() if spot is None else ():
            for name, own in part.named_parameters(recurse=False):
                if own is tensor:
                    spot = assigned_anywhere(type(part), f"self.{name}")
        made = next((it.made for it in self.book.trainers.values() if it.made is not None), None)
        return spot or made

    def _alike(self, slot: Slot, spot: Spot) -> Found:
        return self.say(
            "units-alike",
            spot,
            f"the {slot.shape[0]} units of {slot.name} began alike, and are alike after {self.clock.steps} steps",
            "Units that have the same weights, and are read with the same weights, get the same gradient: each step "
            f"moves them together. The layer computes one number {slot.shape[0]} times.",
            "nn.init.xavier_uniform_(layer.weight)  # different numbers; one number for all is for biases and gains",
            times=self.clock.steps,
            about={slot.key},
            names=(slot.name,),
        )

    def _padding_rows(self, module: nn.Module, told: set[Spot | None]) -> Iterator[Found]:
        for name, part in module.named_modules():
            if not isinstance(part, nn.Embedding) or part.padding_idx is None:
                continue
            spot, filler = self._filled.get(_place(part.weight), (None, ""))
            row = part.weight.detach()[part.padding_idx]
            times = self._padded.get(part.weight.data_ptr(), 0)
            if filler in _RANDOM and spot not in told and times >= 2 and bool(row.any()):
                told.add(spot)
                yield self.say(
                    "padding-row",
                    spot,
                    f"the row for padding of {name or 'the embedding'} is not zero: it was filled like the others",
                    f"padding_idx={part.padding_idx} sets this row to zero when the layer is made, and keeps gradients "
                    "from it. Filled again, it stays at random numbers, which enter every sum that takes padding in.",
                    f"with torch.no_grad():\n    {name or 'embedding'}.weight[{part.padding_idx}].zero_()",
                    level="likely" if part.weight.data_ptr() in self._added else None,
                    times=times,
                )


def _place(tensor: torch.Tensor) -> tuple[int, int]:
    return tensor.data_ptr(), tensor.numel()


def _is_alike(slot: Slot, axis: int, units: int = 0) -> bool:
    """Say whether the parts of a weight along an axis moved as one, so that they are still the same."""
    tensor = slot.tensor
    if tensor is None or slot.first is None or not tensor.is_floating_point():
        return False
    value = tensor.detach()
    if axis:
        value = value.reshape(len(value), units, -1).transpose(0, 1)
    rows = value.reshape(len(value), -1)
    now: Any = sampled(tensor)
    moved = float((now - slot.first).abs().max()) if now.shape == slot.first.shape else 0.0
    spread = float((rows - rows[:1]).abs().max())
    return spread <= _SPREAD * moved if moved else not bool(rows.any())


def _reads(later: Slot, slot: Slot) -> bool:
    """Say whether a later weight takes in the units of a weight, all with the same numbers."""
    units = slot.shape[0]
    return later.shape[1] % units == 0 and _is_alike(later, 1, units)
