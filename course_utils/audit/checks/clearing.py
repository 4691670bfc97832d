"""Gradients that were not cleared, or cleared too early."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from course_utils.audit.book import Trainer, listed
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Step
from course_utils.audit.lines import Spot
from course_utils.audit.source import named_only


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

    def evaluated(self, event: Step) -> None:
        self._count(event)

    def step_begins(self, event: Step) -> None:
        if not event.closure:
            self._count(event)

    def _count(self, event: Step) -> None:
        tally = self._tallies.setdefault(event.trainer.key, _Tally(event.trainer))
        tally.steps += 1
        if event.mixed:
            tally.mixed += 1
            tally.pass_spot, tally.step_spot = event.mixed[0].mixed, event.spot
            tally.slots |= {slot.key for slot in event.mixed}
            tally.names = tally.names or listed(event.mixed)

    def found(self) -> Iterator[Found]:
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
