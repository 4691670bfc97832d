"""Schedules that go on once a batch and are made for epochs, or the other way round, or that leave a group out."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from course_utils.audit.book import Trainer
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Step
from course_utils.audit.first_group import FirstGroup
from course_utils.audit.horizons import Horizon, horizon
from course_utils.audit.lines import Spot
from course_utils.audit.loops import rounds, stands_in_evaluation

_IDLE = 4  # calls of a schedule without a step of its optimizer
_ENOUGH = 8  # steps of the optimizer
_EACH = 0.9  # a schedule that goes on at so many of the steps goes on at each
_GONE = 1e-4  # of the largest rate: steps with less move next to nothing
_TAIL = 3  # one step in so many must be such a step


@dataclass
class _Rates:
    """The learning rates of an optimizer's steps."""

    largest: float = 0.0
    last: float = 0.0
    lost: int = 0  # steps in a row, up to now, with a rate of nearly 0
    negative: int = 0

    def add(self, rate: float) -> None:
        self.largest, self.last = max(self.largest, rate), rate
        self.lost = self.lost + 1 if abs(rate) <= _GONE * self.largest else 0
        self.negative += rate < 0


@dataclass
class _Paced:
    """A schedule, and the lines that let it go on."""

    scheduler: weakref.ref[Any]
    kind: str
    trainer: Trainer
    made_for: Horizon | None
    epochs: int | None  # rounds of the loop around the batches, where the first call stands in one over batches
    calls: int = 0
    spots: Counter[Spot] = field(default_factory=Counter)
    steps: int = 0  # of its optimizer, when it last went on
    idle: int = 0  # calls in a row before which its optimizer made no step


class Pacing(Check):
    """How often a schedule goes on, against the steps that it is made for."""

    codes: ClassVar = ("schedule-too-fast", "schedule-too-slow", "schedule-of-other")

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._paced: dict[int, _Paced] = {}
        self._rates: dict[int, _Rates] = {}
        self._first: dict[int, FirstGroup] = {}  # of optimizers with several groups

    def scheduled(self, scheduler: Any, spot: Spot | None) -> None:
        optimizer = getattr(scheduler, "optimizer", None)
        if spot is None or not isinstance(optimizer, torch.optim.Optimizer):
            return
        paced = self._paced.get(id(scheduler))
        if paced is None or paced.scheduler() is not scheduler:
            around = rounds()
            paced = self._paced[id(scheduler)] = _Paced(
                weakref.ref(scheduler),
                type(scheduler).__name__,
                self.book.trainer(optimizer),
                horizon(scheduler),
                around[1] if len(around) > 1 else None,
            )
        paced.idle = paced.idle + 1 if paced.steps == paced.trainer.steps else 0
        paced.steps = paced.trainer.steps
        paced.calls += 1
        paced.spots[spot] += 1

    def step_begins(self, event: Step) -> None:
        optimizer = event.trainer.ref()
        if optimizer is not None and self._paced:
            rates = self._rates.setdefault(event.trainer.key, _Rates())
            rates.add(max(float(group.get("lr") or 0.0) for group in optimizer.param_groups))
        if optimizer is not None and len(optimizer.param_groups) > 1:
            self._first.setdefault(event.trainer.key, FirstGroup()).note(optimizer)

    def found(self) -> Iterator[Found]:
        for trainer in self.book.trainers.values():
            first = self._first.get(trainer.key)
            line = first.line(trainer.made or trainer.spot) if first is not None else None
            if first is not None and line is not None:
                yield self._left_out(trainer, first, line)
        for paced in self._paced.values():
            other = self._successor(paced)
            if other is not None:
                yield self._of_other(paced, other)
                continue
            aside = next((spot for spot in paced.spots if stands_in_evaluation(spot)), None)
            if aside is not None and paced.calls > 2:
                yield self._aside(paced, aside)
                continue
            steps = paced.trainer.steps
            rates = self._rates.get(paced.trainer.key, _Rates())
            if steps < _ENOUGH:
                continue
            if rates.negative >= 2:
                yield self._too_fast(paced, f"{rates.negative} steps had a rate below 0: they climbed", "error")
            elif paced.calls >= _EACH * steps:
                early = self._is_early(paced)
                if early or (rates.largest > 0 and rates.lost * _TAIL >= steps):
                    yield self._too_fast(paced, early or self._lost(rates, steps))
            elif paced.made_for is not None and paced.made_for.is_for_steps(paced.calls, steps):
                yield self._too_slow(paced, steps)

    def _successor(self, paced: _Paced) -> Trainer | None:
        """Return the optimizer that makes the steps now, with parameters that the schedule's optimizer held as well."""
        mine = {slot.key for slot in paced.trainer.slots}
        for trainer in self.book.trainers.values() if paced.idle >= _IDLE else ():
            if trainer is not paced.trainer and trainer.steps >= _IDLE and mine & {slot.key for slot in trainer.slots}:
                return trainer
        return None

    def _of_other(self, paced: _Paced, other: Trainer) -> Found:
        name = other.name or "the optimizer"
        line = paced.spots.most_common(1)[0][0]
        return self.say(
            "schedule-of-other",
            other.made or line,
            f"the schedule changes the rate of an optimizer that makes no steps any more, and not that of {name}",
            f"{paced.kind} was made with the optimizer before this one, and goes on with it (line {line.line}). "
            f"{name} made {other.steps} steps at a rate that nothing changes.",
            f"scheduler = torch.optim.lr_scheduler.{paced.kind}({name}, ...)  # again, for the new optimizer",
            times=paced.idle,
            about={paced.trainer.key, other.key},
        )

    def _left_out(self, trainer: Trainer, first: FirstGroup, line: Spot) -> Found:
        name, count = trainer.name or "the optimizer", len(trainer.groups)
        shown = ", ".join(f"{it:.3g}" for it in first.rates[:3])
        return self.say(
            "schedule-of-other",
            line,
            f"the schedule writes the rate of the first group, and {name} has {count}",
            f"The first group's rate began with {shown}; in all {first.steps} "
            f"steps that of the rest was {max(first.others):.3g}.",
            f'for group in {name}.param_groups:\n    group["lr"] = group["initial_lr"] * factor  # initial_lr: '
            "written into each group once, before",
            level="likely",
            certain=False,
            times=first.steps,
            about={trainer.key},
        )

    def _aside(self, paced: _Paced, spot: Spot) -> Found:
        return self.say(
            "schedule-too-fast",
            spot,
            f"the schedule goes on with each batch of the evaluation: {paced.kind} went on {paced.calls} times",
            f"A schedule counts the calls of its step(). {paced.trainer.name or 'The optimizer'} made "
            f"{paced.trainer.steps} steps, and none of them in this loop.",
            "scheduler.step()  # after the loop over the evaluation's batches, once an epoch",
            certain=False,
            times=paced.calls,
            about={paced.trainer.key},
        )

    def _is_early(self, paced: _Paced) -> str:
        """Say how a schedule that goes on with each step is over within the first epochs, or nothing."""
        epochs, made_for = paced.epochs, paced.made_for
        if epochs is None or made_for is None or epochs < 2 or paced.calls < 2 * epochs:
            return ""
        return made_for.is_for_epochs(paced.calls, epochs)

    def _lost(self, rates: _Rates, steps: int) -> str:
        return f"the last {rates.lost} of {steps} steps had a rate of {rates.last:.1g}, after {rates.largest:.1g}"

    def _too_fast(self, paced: _Paced, seen: str, level: Any = None) -> Found:
        name = paced.trainer.name or "the optimizer"
        many = f"{paced.calls} times in {paced.trainer.steps} steps of {name}"
        return self.say(
            "schedule-too-fast",
            paced.spots.most_common(1)[0][0],
            f"the schedule is over long before the training: {paced.kind} went on {many}",
            f"A schedule counts the calls of its step(), and not epochs. Here {seen}.",
            "scheduler.step()  # after each epoch, outside the loop over batches; or make the schedule for as many "
            "steps as there are batches",
            level=level,
            certain=level == "error",
            times=paced.calls,
            about={paced.trainer.key},
        )

    def _too_slow(self, paced: _Paced, steps: int) -> Found:
        made_for = paced.made_for.steps if paced.made_for else 0
        name = paced.trainer.name or "the optimizer"
        return self.say(
            "schedule-too-slow",
            paced.spots.most_common(1)[0][0],
            f"the schedule hardly begins: {paced.kind} is made for {made_for} steps and went on {paced.calls} times",
            f"A schedule counts the calls of its step(). {name} made {steps} steps in the meantime, about as many as "
            "the schedule has, so the rest of it never came.",
            "scheduler.step()  # after each optimizer.step(), inside the loop over batches",
            certain=False,
            times=paced.calls,
            about={paced.trainer.key},
        )
