"""Training and evaluation: models in the wrong mode, and graphs recorded where nobody needs them."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch

from course_utils.audit.book import Model
from course_utils.audit.careless import WORDS, are_pooled, careless_calls, unreached
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call, Load, Pass, Step
from course_utils.audit.flow import feeds_a_pass
from course_utils.audit.lines import Spot
from course_utils.audit.loops import is_before_loop
from course_utils.audit.modes import is_normalization
from course_utils.audit.source import is_bare_call
from course_utils.audit.teachers import Teachers

# A place that called so often for a pass calls for one always.
_TRUSTED = 3
_FEW, _RARE = 64, 50
_SETTLED = 5

# So many calls in evaluation are looked into for parts that are still in training.
_LOOKS = 3


@dataclass
class _Site:
    """One line that calls one model."""

    model: Model
    spots: tuple[Spot, ...]
    used: int = 0  # calls whose graph a pass ran through
    unused: int = 0
    in_training: int = 0  # calls without recording while parts behaved as in training
    draws: int = 0  # of them those that were given the same as the call before
    parts: tuple[str, ...] = ()
    training: bool = False
    last: weakref.ref[torch.Tensor] | None = None
    last_step: int = -1
    most: int = 0  # numbers that a call was given


@dataclass
class _Evaluated:
    """The calls of one model in evaluation, from one line."""

    model: Model
    spots: tuple[Spot, ...]
    calls: int = 0
    draws: int = 0  # of them those that were given the same as the call before, with no step between
    steps: int = 0
    last: weakref.ref[torch.Tensor] | None = None


class Modes(Check):
    """In which mode a model is called, with or without recording, and what becomes of the result."""

    codes: ClassVar = ("left-in-eval", "eval-in-train", "graph-in-validation")

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._sites: dict[tuple[int, Spot | None], _Site] = {}
        self._pending: dict[int, tuple[_Site, int]] = {}
        self._set: dict[int, Spot | None] = {}  # by a module's id: where it was put into evaluation mode
        self._woken: dict[int, Spot | None] = {}  # and where it was last put into training mode
        self._last_set: Spot | None = None
        # By a model's key: its last recorded call, one in training mode first, and after how many steps it came.
        self._now: dict[int, tuple[Call, int]] = {}
        self._asleep: dict[int, list[Any]] = {}  # by a model's key: steps in evaluation, steps in training, last call
        self._evaluated: dict[tuple[int, tuple[Spot, ...]], _Evaluated] = {}
        self._unreached: dict[tuple[Spot, str], tuple[Model, int]] = {}
        self._teachers = Teachers(self)

    def pass_ended(self, event: Pass) -> None:
        self._teachers.pass_ended(event)

    def loaded(self, event: Load) -> None:
        self._teachers.loaded(event)

    def mode_set(self, module: Any, training: bool, spot: Spot | None) -> None:
        self._teachers.mode_set(module, training)
        if training:
            self._woken[id(module)] = spot
        else:
            self._set[id(module)] = self._last_set = spot

    def called(self, event: Call) -> None:
        self._teachers.called(event)
        if event.grad and event.recorded is not None:
            before = self._now.get(event.model.key)
            if before is None or event.training or not before[0].training or before[1] != self.clock.steps:
                self._now[event.model.key] = replace(event, given=None, out=None), self.clock.steps  # neither is kept
        if not event.training:
            self._look_into(event)
        if event.by_torch or (not self.clock.steps and not self.clock.passes):
            return
        spot = event.spots[0] if event.spots else None
        site = self._sites.setdefault((event.model.key, spot), _Site(event.model, event.spots))
        given = event.given
        same = (
            given is not None and site.last is not None and site.last() is given and site.last_step == self.clock.steps
        )
        site.last = weakref.ref(given) if given is not None else None
        site.last_step = self.clock.steps
        site.most = max(site.most, given.numel() if given is not None else _FEW + 1)
        site.training = event.training
        if event.grad and event.recorded is not None and site.used < _TRUSTED and site.unused < _SETTLED:
            self._pending[event.recorded] = site, self.clock.passes
        if event.training and event.active and (not event.grad or event.recorded is not None):
            site.parts = event.active
            if not event.grad:
                site.in_training += 1
                site.draws += same

    def _look_into(self, event: Call) -> None:
        site = event.model.key, event.spots
        seen = self._evaluated.setdefault(site, _Evaluated(event.model, event.spots))
        seen.calls += 1
        same = seen.last is not None and event.given is not None and seen.last() is event.given
        seen.draws += same and seen.steps == self.clock.steps
        seen.steps = self.clock.steps
        seen.last = weakref.ref(event.given) if event.given is not None else None
        for place in unreached(event.module) if seen.calls <= _LOOKS else ():
            self._unreached[place] = event.model, self._unreached.get(place, (event.model, 0))[1] + 1

    def pass_begins(self, event: Pass) -> None:
        if not self._pending:
            return
        numbers = event.graph.numbers
        for number, (site, passes) in list(self._pending.items()):
            if number in numbers:
                site.used += 1
            elif self.clock.passes - passes > 2:
                site.unused += 1
            else:
                continue
            del self._pending[number]

    def step_begins(self, event: Step) -> None:
        for owner in {slot.owner for slot in event.fresh}:
            if owner is None or owner not in self._now:
                continue
            call = self._now[owner][0]
            counts = self._asleep.setdefault(call.model.key, [0, 0, call])
            if not call.training and call.asleep:
                counts[0], counts[2] = counts[0] + 1, call
            else:
                counts[1] += 1
                if counts[0]:
                    counts[0] = 0  # it was put back

    def found(self) -> Iterator[Found]:
        for site, _ in self._pending.values():
            site.unused += 1
        yield from self._left_in_eval()
        for site in self._sites.values():
            module = site.model.ref()
            if module is None or not self.book.trained(module) or not site.spots:
                continue
            nothing = site.used == 0 and not is_bare_call(site.spots[0], site.model.name)
            if not nothing or (not site.in_training and not site.unused) or feeds_a_pass(site.spots):
                continue
            if site.parts and site.training and site.draws * 2 <= site.in_training:
                yield self._in_training(site)
            if site.unused:
                yield self._recorded(site)
        yield from self._dropping()
        yield from self._teachers.found()

    def _dropping(self) -> Iterator[Found]:
        """What drops in evaluation, too, unless the same input is given again and again to see how results vary."""
        told: dict[tuple[Spot, str], int] = {}
        for seen in self._evaluated.values():
            module = seen.model.ref()
            if module is None or (seen.draws * 2 > seen.calls and are_pooled(seen.spots)):
                continue
            found = dict.fromkeys(careless_calls(module, seen.spots))
            found.update({place: None for place, (model, _) in self._unreached.items() if model is seen.model})
            for place in found:
                told[place] = told.get(place, 0) + seen.calls
        for (spot, kind), times in told.items():
            headline, why, fix = WORDS[kind]
            yield self.say("eval-in-train", spot, headline, why, fix, times=times)

    def _left_in_eval(self) -> Iterator[Found]:
        for evaluated, trained, call in self._asleep.values():
            if evaluated < 2:
                continue
            name = call.model.name or "model"
            module = call.module
            parts = [module.get_submodule(part) if part else module for part in call.asleep]
            only_norms = all(map(is_normalization, parts))
            if only_norms and _are_frozen(parts):
                continue  # whoever freezes them has their statistics stay, too
            spot = self._set.get(id(module)) or self._last_set or (call.spots[0] if call.spots else None)
            woken = self._woken.get(id(module))
            early = bool(trained) and woken is not None and spot is not None and is_before_loop(woken, spot)
            since = f"the last {evaluated} steps" if trained else f"all {evaluated} steps"
            yield self.say(
                "left-in-eval",
                woken if early else spot,
                f"{name} was trained in evaluation mode in {since}",
                f"{', '.join(part or name for part in call.asleep[:3])} behaves differently in training, and was "
                "switched to evaluation: "
                + (
                    f"this line calls train() once, before the loop, and line {spot.line} eval() in each round."
                    if early and spot is not None
                    else "nothing called train() after this line."
                    if trained
                    else "nothing called train() before training."
                ),
                f"{name}.train()  # after each evaluation, before the next step of training",
                level="note" if only_norms and not trained else "likely",
                certain=bool(trained),
                times=evaluated,
                names=(name,),
                also=[("trained here", place) for place in call.spots[:1]],
            )

    def _in_training(self, site: _Site) -> Found:
        name = site.model.name or "model"
        times = site.in_training or site.unused
        return self.say(
            "eval-in-train",
            site.spots[0],
            f"{name} is evaluated in training mode",
            f"{', '.join(part or name for part in site.parts[:3])} behaves as in training here: dropout drops, batch "
            "norm takes the batch's statistics and adds them to its averages. no_grad() changes none of that.",
            f"{name}.eval()  # before the evaluation, and {name}.train() after it",
            times=times,
            names=(name,),
        )

    def _recorded(self, site: _Site) -> Found:
        name = site.model.name or "model"
        shown = site.most <= _FEW and site.unused * _RARE < self.clock.steps  # a number for a log, now and then
        return self.say(
            "graph-in-validation",
            site.spots[0],
            f"{name} records a graph here that no backward pass ever used",
            f"{site.unused} calls built a graph and kept its tensors for nothing: memory and time"
            + (". eval() does not switch recording off." if not site.training else "."),
            "with torch.no_grad():  # around the evaluation",
            level="likely" if site.unused >= 2 and not shown else "note",
            certain=False,
            times=site.unused,
            names=(name,),
        )


def _are_frozen(parts: Iterable[torch.nn.Module]) -> bool:
    """Say whether parts have parameters, and none that trains."""
    held = [p for part in parts for p in part.parameters()]
    return bool(held) and not any(p.requires_grad for p in held)
