"""Schedulers that begin before their optimizer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

from torch.optim.lr_scheduler import ReduceLROnPlateau

from course_utils.audit.check import Check, Found
from course_utils.audit.lines import Spot


class Schedules(Check):
    """A scheduler's step before the first step of its optimizer: the first learning rate is never used."""

    codes: ClassVar = ("scheduler-first",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._early: dict[int, Spot | None] = {}
        self._calls: Counter[Spot | None] = Counter()

    def scheduled(self, scheduler: Any, spot: Spot | None) -> None:
        optimizer = getattr(scheduler, "optimizer", None)
        if optimizer is None or spot is None or isinstance(scheduler, ReduceLROnPlateau):
            return  # what waits for a plateau may come first
        self._calls[spot] += 1
        trainer = self.book.trainer(optimizer)
        # A scaler that skipped the first steps is no mistake, and neither is a training that began before the watch.
        if trainer.steps or getattr(optimizer, "_opt_called", False) or self.recorder.scaling.passes:
            return
        self._early.setdefault(trainer.key, spot)

    def found(self) -> Iterator[Found]:
        for trainer in self.book.trainers.values():
            if trainer.key in self._early and trainer.steps:
                spot = self._early[trainer.key]
                yield self.say(
                    "scheduler-first",
                    spot,
                    f"the scheduler steps before {trainer.name or 'the optimizer'} does",
                    "The first value of the schedule is left out: no step was ever made with it, and all others come "
                    "one too early.",
                    "optimizer.step()\nscheduler.step()  # after it",
                    times=self._calls[spot],
                    about={trainer.key},
                )
