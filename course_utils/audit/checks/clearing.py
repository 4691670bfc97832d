"""Gradients that were not cleared, or cleared too early."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from course_utils.audit.book import Trainer, listed
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Pass, Step
from course_utils.audit.lines import Spot
from course_utils.audit.source import function_around, named_only

_SHARPNESS = re.compile(r"\bsam\b|\brho\b|sharpness", re.IGNORECASE)


@dataclass
class _Tally:
    trainer: Trainer
    mixed: int = 0
    steps: int = 0
    pass_spot: Spot | None = None
    step_spot: Spot | None = None
    names: str = ""
    slots: set[int] = field(default_factory=set)


class Clearing(Check):
    """A pass adds onto a gradient that a step has used, and another step uses the sum."""

    codes: ClassVar = ("no-zero-grad",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._tallies: dict[int, _Tally] = {}
        self._versions: dict[int, int] = {}  # of parameters, when a pass had ended
        self._moved: dict[int, Spot | None] = {}  # passes that ran at other weights than the one before
        self._both: Counter[Spot] = Counter()

    def pass_begins(self, event: Pass) -> None:
        if not event.accumulate or not self._versions:
            return
        open_ = [slot for slot in self.book.live() if slot.key in self._versions and slot.content and not slot.used]
        moved = [slot for slot in open_ if slot.tensor is not None and slot.tensor._version != self._versions[slot.key]]
        if moved and len(moved) == len(open_):
            self._moved[event.number] = event.spot

    def pass_ended(self, event: Pass) -> None:
        if event.accumulate and self.recorder.operations is not None:
            self._versions = {it.key: it.tensor._version for it in event.received if it.tensor is not None}

    def evaluated(self, event: Step) -> None:
        self._count(event)

    def step_begins(self, event: Step) -> None:
        if not event.closure:
            self._count(event)
        content = max((slot.content for slot in event.fresh), key=len, default=()) if self._moved else ()
        spots = {self._moved[number] for number in content[1:] if number in self._moved}
        if len(content) == 2 and not event.mixed:
            self._both.update(it for it in spots if it is not None)
        self._moved.clear()
        self._versions.clear()

    def _count(self, event: Step) -> None:
        tally = self._tallies.setdefault(event.trainer.key, _Tally(event.trainer))
        tally.steps += 1
        if event.mixed:
            tally.mixed += 1
            tally.pass_spot, tally.step_spot = event.mixed[0].mixed, event.spot
            tally.slots |= {slot.key for slot in event.mixed}
            tally.names = tally.names or listed(event.mixed)

    def found(self) -> Iterator[Found]:
        for place, times in self._both.items():
            if times >= 3 and _is_sharpness_aware(place):
                yield self._summed(place, times)
        for tally in self._tallies.values():
            if tally.mixed < 2 or tally.mixed * 2 < tally.steps - 1:
                continue
            name = tally.trainer.name or "optimizer"
            spot = tally.pass_spot or tally.step_spot
            forgotten = spot and named_only(spot, "zero_grad")
            line = f" (line {tally.step_spot.line})" if tally.step_spot else ""
            why = (
                f"This pass added onto gradients that {name}.step(){line} had already used, so each later step "
                f"moved along the sum of all gradients so far: {tally.names}."
            )
            if forgotten:
                why += f" Line {forgotten.line} names zero_grad without calling it: the parentheses are missing."
            yield self.say(
                "no-zero-grad",
                forgotten or spot,
                f"{tally.mixed} of {tally.steps} steps of {name} used old gradients again: nothing cleared them",
                why,
                f"{name}.zero_grad()  # before each backward(), or right after {name}.step()",
                times=tally.mixed,
                about=tally.slots | {tally.trainer.key},
                names=(name,),
            )

    def _summed(self, spot: Spot, times: int) -> Found:
        return self.say(
            "no-zero-grad",
            spot,
            f"{times} steps used the gradient at the moved weights and the one before it, added up",
            "Sharpness-aware minimization steps along the gradient at the moved weights alone. The first pass's "
            "gradient was still in .grad when this one ran.",
            "optimizer.zero_grad()  # after the weights were moved, before the second backward()",
            level="likely",
            certain=False,
            times=times,
        )


def _is_sharpness_aware(spot: Spot) -> bool:
    """Say whether the source names the method: adversarial training moves weights in the same way, and adds up."""
    scope = function_around(spot)
    return scope is not None and _SHARPNESS.search(ast.unparse(scope)) is not None
