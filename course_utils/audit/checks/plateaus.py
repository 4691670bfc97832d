"""A schedule that waits for a plateau, and takes the metric's direction the wrong way round."""

from __future__ import annotations

import ast
import math
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from course_utils.audit.book import Trainer
from course_utils.audit.check import Check, Found
from course_utils.audit.directions import Direction, direction
from course_utils.audit.events import Pass
from course_utils.audit.expressions import assigned_value, returned_by
from course_utils.audit.lines import Spot, spots
from course_utils.audit.meanings import meanings
from course_utils.audit.source import assigned, statement
from course_utils.explain.source import called

_CALLS = 4
_BETTER = 0.02  # of the first value: by so much it improved from the first call to the last
_STRONGLY = 0.3  # where nothing says what the metric is


@dataclass
class _Waiting:
    """One schedule, what it was told, and when it lowered the rate."""

    scheduler: weakref.ref[Any]
    trainer: Trainer
    mode: str
    patience: int
    spot: Spot | None
    direction: Direction  # of a metric that becomes better, as far as its name tells
    name: str
    values: list[float] = field(default_factory=list)
    lowered: list[int] = field(default_factory=list)  # at which calls
    rates: tuple[float, ...] = ()
    losses: list[float] = field(default_factory=list)  # of the last pass before each call


class Plateaus(Check):
    """What schedules that follow a metric are told, and what they make of it."""

    codes: ClassVar = ("plateau-direction",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._waiting: dict[int, _Waiting] = {}
        self._loss: torch.Tensor | None = None

    def pass_begins(self, event: Pass) -> None:
        if self._waiting and event.accumulate and isinstance(event.outputs[0], torch.Tensor):
            self._loss = event.outputs[0].detach()

    def scheduled(self, scheduler: Any, spot: Spot | None) -> None:
        waiting = self._of(scheduler, spot)
        if waiting is not None:
            waiting.rates = _rates(scheduler)

    def measured(self, scheduler: Any, metric: Any) -> None:
        waiting = self._of(scheduler, None)
        if waiting is None:
            return
        if any(now < before for now, before in zip(_rates(scheduler), waiting.rates, strict=False)):
            waiting.lowered.append(len(waiting.values))
        waiting.values.append(float(metric))
        single = self._loss is not None and self._loss.numel() == 1
        waiting.losses.append(float(self._loss) if single else math.nan)  # type: ignore[arg-type]

    def _of(self, scheduler: Any, spot: Spot | None) -> _Waiting | None:
        known = self._waiting.get(id(scheduler))
        if known is not None and known.scheduler() is scheduler:
            return known
        if spot is None or not isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
            return None
        better, name = _meaning()
        known = self._waiting[id(scheduler)] = _Waiting(
            weakref.ref(scheduler),
            self.book.trainer(scheduler.optimizer),
            scheduler.mode,
            int(scheduler.patience),
            self.book.made.get(scheduler) or spot,
            better,
            name,
        )
        return known

    def found(self) -> Iterator[Found]:
        for waiting in self._waiting.values():
            times = _against(waiting)
            if times:
                falls, told = waiting.mode == "max", waiting.name or "the metric"
                right = "min" if falls else "max"
                first, last = waiting.values[0], waiting.values[-1]
                yield self.say(
                    "plateau-direction",
                    waiting.spot,
                    f"ReduceLROnPlateau lowered the rate {times} times while {told} became better: from {first:.3g} "
                    f"to {last:.3g}",
                    f'With mode="{waiting.mode}" it takes {"smaller" if falls else "larger"} values for worse ones, '
                    "and each improvement for an epoch without one.",
                    f'ReduceLROnPlateau({waiting.trainer.name or "optimizer"}, mode="{right}")',
                    level=None if waiting.direction else "likely",
                    certain=bool(waiting.direction),
                    times=times,
                    about={waiting.trainer.key},
                    names=[told],
                )


def _rates(scheduler: Any) -> tuple[float, ...]:
    return tuple(float(group["lr"]) for group in scheduler.optimizer.param_groups)


def _against(waiting: _Waiting) -> int:
    """Return how often the rate was lowered while a metric became better that goes the other way than the mode."""
    wanted = "falls" if waiting.mode == "max" else "rises"
    values = waiting.values
    if len(values) < _CALLS or waiting.direction not in (wanted, "") or not all(map(math.isfinite, values)):
        return 0
    sign = -1.0 if wanted == "falls" else 1.0
    gain = sign * (values[-1] - values[0]) / max(abs(values[0]), 1e-12)
    if gain < _BETTER:
        return 0
    if not waiting.direction:  # a loss that falls is one where the training's falls as well
        losses = [it for it in waiting.losses if math.isfinite(it)]
        if wanted == "rises" or gain < _STRONGLY or min(values) < 0 or len(losses) < _CALLS or losses[-1] >= losses[0]:
            return 0
    return sum(sign * values[at] > sign * values[max(0, at - waiting.patience - 1)] for at in waiting.lowered)


def _meaning() -> tuple[Direction, str]:
    """Return how the metric that a schedule is given here becomes better, as its name says, and that name."""
    name = ""
    for spot in spots(3):
        given = _given(spot)
        if given is None:
            continue
        name = name or (ast.unparse(given) if isinstance(given, ast.Name | ast.Attribute) else "")
        value = assigned_value(spot, ast.unparse(given))
        whole = given if value is None else value
        for part in (given, value, *(() if _is_part(spot, given) else returned_by(spot, whole))):
            found = direction(part) if part is not None else None
            if found is not None:
                return found, name
        # Where no name says it: what the number was computed of, part by part.
        ways = {found for part in meanings(spot, given) if (found := direction(part)) is not None}
        if ways:
            return (ways.pop() if len(ways) == 1 else ""), name
    return "", name


def _is_part(spot: Spot, given: ast.expr) -> bool:
    """Say whether what is given is one of several things that a call returns: only its own part says what it is."""
    made = assigned(spot, ast.unparse(given))
    line = statement(made) if made is not None else None
    return isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Tuple)


def _given(spot: Spot) -> ast.expr | None:
    """Return what a call at a line is given first: of `step`, where it is called there."""
    found = statement(spot)
    calls = [it for it in ast.walk(found) if isinstance(it, ast.Call)] if found is not None else []
    calls.sort(key=lambda it: called(it) != "step")
    for call in calls:
        metrics = [it.value for it in call.keywords if it.arg == "metrics"]
        if metrics or call.args:
            return [*metrics, *call.args][0]
    return None
