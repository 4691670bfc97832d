"""Gradients clipped where it changes nothing, or while they are scaled; steps on scaled gradients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

from course_utils.audit.book import Slot
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Clip, Step
from course_utils.audit.expressions import used_up
from course_utils.audit.lines import Spot


class Clipping(Check):
    """What a clipping found, and whether a step came to use it."""

    codes: ClassVar = ("clip-after-step", "clip-scaled", "clip-nothing", "step-scaled")

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._all: Counter[Spot | None] = Counter()
        self._nothing: Counter[Spot | None] = Counter()
        self._empty: set[Spot] = set()  # lines that were given no parameter with a gradient
        self._late: Counter[Spot | None] = Counter()
        self._scaled: Counter[Spot | None] = Counter()
        self._steps: Counter[Spot | None] = Counter()

    def clipped(self, event: Clip) -> None:
        if not event.bounded:
            return
        self._all[event.spot] += 1
        if event.count == 0 or (event.slots and all(not slot.content and slot.is_zero() for slot in event.slots)):
            self._nothing[event.spot] += 1
            if event.count == 0 and event.spot is not None:
                self._empty.add(event.spot)
        elif event.slots and all(slot.used for slot in event.slots):
            self._late[event.spot] += 1
        elif self.recorder.scaling.passes and any(self._is_scaled(slot) for slot in event.slots):
            self._scaled[event.spot] += 1

    def step_begins(self, event: Step) -> None:
        optimizer = event.trainer.ref()
        if hasattr(optimizer, "grad_scale"):  # it takes the scale off itself
            return
        if self.recorder.scaling.passes and any(self._is_scaled(slot) for slot in event.fresh):
            self._steps[event.spot] += 1

    def _is_scaled(self, slot: Slot) -> bool:
        passes = self.recorder.scaling.passes
        if not any(number in passes for number in slot.content):
            return False
        owners = [trainer for trainer in self.book.trainers.values() if slot in trainer.slots]
        return not any(self.recorder.scaling.is_unscaled(trainer) for trainer in owners)

    def found(self) -> Iterator[Found]:
        for spot, times in self._nothing.items():
            if times >= 2 and times * 2 >= self._all[spot]:
                empty = spot is not None and spot in self._empty
                yield self.say(
                    "clip-nothing",
                    (used_up(spot) if empty and spot is not None else None) or spot,
                    f"{times} of {self._all[spot]} clippings had no gradient to clip"
                    + (f" (line {spot.line})" if empty and spot is not None else ""),
                    "Clipping changes what stands in .grad at that moment: before backward(), or with an iterator of "
                    "parameters that was used up before, that is nothing.",
                    "list(model.parameters())  # an iterator gives them once"
                    if empty and spot is not None and used_up(spot) is not None
                    else "loss.backward()\ntorch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\noptimizer.step()",
                    times=times,
                )
        for spot, times in self._late.items():
            if times >= 2:
                yield self.say(
                    "clip-after-step",
                    spot,
                    f"gradients are clipped after the step that used them, {times} times",
                    "The step has already moved the parameters along the gradients as they were. What is clipped here "
                    "is not used again.",
                    "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\noptimizer.step()",
                    times=times,
                )
        for spot, times in self._scaled.items():
            if times >= 2:
                yield self.say(
                    "clip-scaled",
                    spot,
                    "gradients are clipped while they still carry the scaler's factor",
                    "The bound is meant for true gradients. Scaled ones are thousands of times larger, so each is cut "
                    "down to the bound, and after unscaling almost nothing is left.",
                    "scaler.unscale_(optimizer)\ntorch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
                    times=times,
                )
        for spot, times in self._steps.items():
            if times >= 2:
                yield self.say(
                    "step-scaled",
                    spot,
                    "the optimizer steps on gradients that still carry the scaler's factor",
                    "scaler.scale() multiplied the loss. Only scaler.step() divides the gradients again, and skips the "
                    "step where they overflowed.",
                    "scaler.step(optimizer)\nscaler.update()",
                    times=times,
                )
