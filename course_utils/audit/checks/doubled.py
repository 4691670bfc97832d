"""Two schedules of one optimizer: one of them meant for another optimizer, or each undoing what the other did."""

from __future__ import annotations

import re
import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch.optim import lr_scheduler

from course_utils.audit.book import Trainer
from course_utils.audit.check import Check, Found
from course_utils.audit.lines import Spot
from course_utils.audit.source import bound_at

_CALLS = 3
_ALWAYS = 0.9
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_COMMON = frozenset(
    {"opt", "optim", "optimizer", "optimiser", "sched", "scheduler", "schedule", "schedules", "lr", "self", "decay"}
)
_STATE = frozenset({"last_epoch", "_step_count", "_last_lr", "base_lrs", "_get_lr_called_within_step", "_is_initial"})

# They compute the rate from the first one, whatever it is now.
_SETS = (
    lr_scheduler.LambdaLR,
    lr_scheduler.OneCycleLR,
    lr_scheduler.CyclicLR,
    lr_scheduler.CosineAnnealingWarmRestarts,
)


@dataclass(eq=False)
class _Schedule:
    """A schedule that goes on by itself, and whose rates it changes."""

    ref: weakref.ref[Any]
    kind: str
    trainer: Trainer
    made: Spot | None
    sets: bool
    settings: dict[str, Any]
    calls: int = 0
    since: Counter[int] = field(default_factory=Counter)  # calls of the others since its last
    undone: Counter[int] = field(default_factory=Counter)  # calls of its own that another overwrote

    @property
    def name(self) -> str:
        return _plain(bound_at(self.made)) if self.made is not None else ""


class Doubled(Check):
    """Whose rate each schedule changes, where there are several schedules or several optimizers."""

    codes: ClassVar = ("schedule-doubled",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._known: dict[int, _Schedule] = {}

    def scheduled(self, scheduler: Any, spot: Spot | None) -> None:
        optimizer = getattr(scheduler, "optimizer", None)
        if not isinstance(optimizer, torch.optim.Optimizer):
            return
        mine = self._known.get(id(scheduler))
        if mine is None or mine.ref() is not scheduler:
            mine = self._known[id(scheduler)] = _Schedule(
                weakref.ref(scheduler),
                type(scheduler).__name__,
                self.book.trainer(optimizer),
                self.book.made.get(scheduler),
                isinstance(scheduler, _SETS),
                _settings(scheduler),
            )
        mine.calls += 1
        for key, other in self._known.items():
            if other is not mine and other.trainer is mine.trainer:
                other.since[id(scheduler)] += 1
                if mine.sets:
                    other.undone[id(scheduler)] += mine.since[key]
        mine.since.clear()

    def found(self) -> Iterator[Found]:
        active = [it for it in self._known.values() if it.calls >= _CALLS]
        told: set[int] = set()
        for mine in active:
            other = self._meant_for(mine, active)
            if other is not None and not told & {mine.trainer.key, other.key}:
                told |= {mine.trainer.key, other.key}
                yield self._misplaced(mine, other)
        for mine in active:
            for key, times in mine.undone.items():
                by = self._known[key]
                often = times >= max(_CALLS, min(_ALWAYS * mine.calls, mine.calls - 1))
                if by in active and often and by.trainer.key not in told:
                    told.add(by.trainer.key)
                    yield self._undone(mine, by, times)

    def _meant_for(self, mine: _Schedule, active: list[_Schedule]) -> Trainer | None:
        """Return the optimizer that a schedule was meant for: another one, that makes steps."""
        twin = any(
            it is not mine
            and it.trainer is mine.trainer
            and it.kind == mine.kind
            and it.settings == mine.settings
            and (it.made or ("", 0)) <= (mine.made or ("", 0))
            for it in active
        )
        for other in self.book.trainers.values():
            if other is mine.trainer or 2 * other.steps < mine.trainer.steps or not other.steps:
                continue
            alone = not any(it.trainer is other for it in self._known.values())
            fits = _words(mine.name) & _words(_called(other)) and not _words(mine.name) & _words(_called(mine.trainer))
            if fits and (alone or _words(_called(mine.trainer))):
                return other
            if twin and alone and not any(self._fits(it, other) for it in active if it.trainer is mine.trainer):
                return other
        return None

    def _fits(self, schedule: _Schedule, trainer: Trainer) -> bool:
        """Say whether a schedule is called like an optimizer that is not its own."""
        own = _words(_called(schedule.trainer))
        return bool(_words(schedule.name) & (_words(_called(trainer)) - own))

    def _misplaced(self, mine: _Schedule, other: Trainer) -> Found:
        own, name = _called(mine.trainer) or "one optimizer", _called(other) or "the other optimizer"
        schedule = mine.name or f"this {mine.kind}"
        more = sum(it.trainer is mine.trainer for it in self._known.values())
        twice = f"{own} has {more} schedules" if more > 1 else f"{own} has this schedule"
        return self.say(
            "schedule-doubled",
            mine.made,
            f"{schedule} changes the rate of {own}, and nothing changes that of {name}",
            f"A schedule belongs to the optimizer that it is made with. {twice}; {name} made {other.steps} steps, and "
            "its rate stayed as it was, or follows another's schedule.",
            f"{mine.name or 'scheduler'} = torch.optim.lr_scheduler.{mine.kind}({name}, ...)",
            certain=False,
            times=mine.calls,
            about={mine.trainer.key, other.key},
            names=(own, name),
        )

    def _undone(self, mine: _Schedule, by: _Schedule, times: int) -> Found:
        name = _called(mine.trainer) or "the optimizer"
        last = max((mine.made, by.made), key=lambda it: it or Spot("", 0))
        return self.say(
            "schedule-doubled",
            last,
            f"{by.kind} sets the rate of {name} anew and undoes what {mine.kind} did, {times} of {mine.calls} times",
            f"{by.kind} computes the rate from the first one, and not from the present one: it does not go on from "
            f"what {mine.kind} has made of it. Of two schedules that go on together, only one counts.",
            "scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, main], milestones=[warmup_steps])",
            level="error",
            times=times,
            about={mine.trainer.key},
            names=(name,),
        )


def _settings(scheduler: Any) -> dict[str, Any]:
    """Return what a schedule was made with."""
    found = {name: value for name, value in vars(scheduler).items() if name not in _STATE and name != "optimizer"}
    return {
        name: value if isinstance(value, int | float | str | bool) else repr(value) for name, value in found.items()
    }


def _called(trainer: Trainer) -> str:
    """Return the name that an optimizer was bound to where it was made; else the one that it is known by."""
    return (_plain(bound_at(trainer.made)) if trainer.made is not None else "") or trainer.name


def _plain(name: str) -> str:
    return name if re.fullmatch(r"[\w.]+", name) else ""


def _words(name: str) -> set[str]:
    """Return what tells a name from others of its kind: "head" of head_opt."""
    return {word.lower() for word in _WORDS.findall(name)} - _COMMON
