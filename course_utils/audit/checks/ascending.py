"""Sharpness-aware steps: weights that are moved up before the second pass, and are never moved back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch

from course_utils.audit.ascents import updates
from course_utils.audit.book import Slot, sampled
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Pass, Step
from course_utils.audit.lines import Spot
from course_utils.audit.reading import scopes_of

_STEPS, _TIMES = 12, 3
_UPWARDS = 0.5  # cosine of a move with the gradient


class Ascending(Check):
    """Where a few weights stand at each pass and each step, in the first steps of an optimizer."""

    codes: ClassVar = ("ascent-not-undone",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._steps = 0
        self._slot: Slot | None = None
        self._passed: tuple[torch.Tensor, torch.Tensor] | None = None  # values and gradient at the end of a pass
        self._stepped: torch.Tensor | None = None  # values after the last step
        self._moved = 0  # so often weights climbed between the passes of a step
        self._climbed = False
        self._undone = False

    def pass_begins(self, event: Pass) -> None:
        now = self._now() if event.accumulate and not self._undone else None
        if now is None:
            return
        if self._stepped is not None:
            self._undone |= not torch.equal(now, self._stepped)
            self._stepped = None
        elif self._passed is not None:
            way, slope = now - self._passed[0], self._passed[1]
            size = float(way.norm() * slope.norm())
            self._climbed |= size > 0 and float(way @ slope) > _UPWARDS * size

    def pass_ended(self, event: Pass) -> None:
        if not event.accumulate or self._undone or self._steps >= _STEPS:
            return
        if self._slot is None:
            held = self.book.held()
            self._slot = next((it for it in event.received if it.is_parameter and (not held or it.key in held)), None)
        tensor, now = self._slot.tensor if self._slot is not None else None, self._now()
        slope = None if tensor is None else tensor.grad
        self._passed = (now, sampled(slope)) if now is not None and slope is not None and not slope.is_sparse else None

    def _now(self) -> torch.Tensor | None:
        tensor = self._slot.tensor if self._slot is not None and self._steps < _STEPS else None
        return None if tensor is None else sampled(tensor)

    def step_begins(self, event: Step) -> None:
        mine = self._slot is not None and any(slot is self._slot for slot in event.trainer.slots)
        now = self._now() if mine and not self._undone else None
        if now is not None and self._climbed and self._passed is not None:
            self._moved += 1
            self._undone |= event.closure or not torch.equal(now, self._passed[0])
        if mine:
            self._steps += 1
            self._passed, self._climbed = None, False

    def step_ended(self, event: Step) -> None:
        if any(slot is self._slot for slot in event.trainer.slots):
            self._stepped = self._now() if not self._undone else None

    def found(self) -> Iterator[Found]:
        if self._undone or self._moved < _TIMES:
            return
        spot = self._line()
        if spot is not None:
            yield self.say(
                "ascent-not-undone",
                spot,
                "the weights are moved up along the gradient before the second pass, and are never moved back",
                "Sharpness-aware minimization takes the gradient at the moved weights, and makes its step from where "
                f"the weights were. Here {self._moved} steps began at the moved ones: each ascent stays in the model.",
                "p.sub_(e)  # for each parameter what was added to it, after the second backward() and before step()",
                certain=False,
                times=self._moved,
            )

    def _line(self) -> Spot | None:
        """Return the line that climbs by hand, if there is one only."""
        lines = {it for file, scope in scopes_of(self.recorder) for it in updates(file, scope, scaled=True)}
        return next(iter(lines)) if len(lines) == 1 else None
