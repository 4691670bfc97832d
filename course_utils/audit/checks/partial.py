"""Gradients clipped or scaled while they are still being gathered: after each part of a window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from course_utils.audit.book import Slot
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Clip, Op, Step
from course_utils.audit.lines import Spot

_FACTORS = frozenset({"mul_", "div_", "__imul__", "__itruediv__"})
_BOUNDS = frozenset({"clamp_", "clip_"})
_WINDOWS = 2


@dataclass
class _Line:
    """A line that cuts gradients down, and how often it did so to sums that then went on growing."""

    windows: int = 0
    most: int = 0  # cuts in one window
    by_hand: bool = False


class Partial(Check):
    """One line that cuts the same gradient down again and again before the step, with passes in between."""

    codes: ClassVar = ("clip-in-window",)
    functions: ClassVar = _FACTORS | _BOUNDS

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._lines: dict[Spot, _Line] = {}
        # By a parameter and a line: what the gradient was made of at each cut since it was cleared or used.
        self._cuts: dict[int, dict[Spot, list[tuple[int, ...]]]] = {}

        self._owners: dict[int, Slot] = {}  # by the address of the gradient
        self._known_at = -1

    def clipped(self, event: Clip) -> None:
        if event.bounded and event.spot is not None:
            self._cut(event.slots, event.spot, False)

    def function(self, event: Op) -> None:
        given = event.args[0] if event.args else None
        if not isinstance(given, torch.Tensor) or (event.name in _FACTORS and not _is_number(event.args[1:2])):
            return
        spot = event.spot if given.is_leaf and not given.requires_grad and self.clock.passes else None
        slot = self._owner(given) if spot is not None else None
        if slot is not None and spot is not None:
            self._cut((slot,), spot, True)

    def _owner(self, grad: torch.Tensor) -> Slot | None:
        """Return whose gradient a tensor is, or shares its memory with."""
        if self._known_at != self.clock.passes:
            self._known_at = self.clock.passes
            tensors = [(slot, slot.tensor) for slot in self.book.live() if slot.content]
            self._owners = {it.grad.data_ptr(): slot for slot, it in tensors if it is not None and it.grad is not None}
        found = self._owners.get(grad.data_ptr())
        return found if found is not None and found.shape == tuple(grad.shape) else None

    def _cut(self, slots: tuple[Slot, ...], spot: Spot, by_hand: bool) -> None:
        line = self._lines.setdefault(spot, _Line(by_hand=by_hand))
        line.by_hand = by_hand
        for slot in slots:
            if slot.content and not slot.used:
                before = self._cuts.setdefault(slot.key, {}).setdefault(spot, [])
                if before and not set(before[-1]) < set(slot.content):
                    before.clear()  # another gradient, or the same one twice
                before.append(slot.content)

    def step_begins(self, event: Step) -> None:
        most: dict[Spot, int] = {}
        for slot in event.trainer.slots:
            for spot, contents in self._cuts.pop(slot.key, {}).items():
                if len(contents) > 1 and set(contents[-1]) <= set(slot.content):
                    most[spot] = max(most.get(spot, 0), len(contents))
        for spot, times in most.items():
            self._lines[spot].windows += 1
            self._lines[spot].most = max(self._lines[spot].most, times)

    def found(self) -> Iterator[Found]:
        for spot, line in self._lines.items():
            if line.windows >= _WINDOWS:
                what = "scaled or clamped" if line.by_hand else "clipped"
                yield self.say(
                    "clip-in-window",
                    spot,
                    f"gradients are {what} {line.most} times before one step, while passes still add to them",
                    "Each time, what the earlier parts of the window have left is cut down once more, together with "
                    "the new part. The first parts hardly count in the step, and the last one counts most.",
                    "if (i + 1) % parts == 0:\n    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
                    "    optimizer.step()",
                    certain=not line.by_hand,
                    times=line.windows,
                )


def _is_number(given: tuple[Any, ...]) -> bool:
    """Say whether something is scaled as a whole, by a number or by a tensor of one entry."""
    factor = given[0] if given else None
    return isinstance(factor, int | float) or (isinstance(factor, torch.Tensor) and factor.numel() == 1)
