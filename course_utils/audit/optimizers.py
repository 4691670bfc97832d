"""What optimizers and their schedulers do: steps, and clearing."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau

from course_utils.audit.book import Slot, Trainer
from course_utils.audit.desk import Desk
from course_utils.audit.events import Step, sequence_now
from course_utils.audit.gradients import delivered, synchronize
from course_utils.audit.lines import here


class Optimizers:
    """Hears of every optimizer's steps."""

    def __init__(self, recorder: Desk) -> None:
        self._recorder = recorder
        self._scheduling = False
        self._left: list[bool] = []  # for each step that runs, whether functions are not watched meanwhile

    def step_pre(self, optimizer: Any, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
        if self._recorder.elsewhere() or _is_nested(optimizer, sys._getframe(1)):
            return None
        with self._recorder.aside():
            self._step_begins(optimizer, args, kwargs)
        operations = self._recorder.operations
        self._left.append(operations is not None and operations.step_aside())
        closure = next((value for value in (*args[1:], *kwargs.values()) if callable(value)), None)
        if closure is None:
            return None

        def watched() -> Any:
            self._recorder.stepping = False
            self._come_back()
            try:
                return closure()
            finally:
                self._recorder.stepping = True
                operations = self._recorder.operations
                self._left.append(operations is not None and operations.step_aside())
                with self._recorder.aside():
                    self._evaluated(self._recorder.book.trainer(optimizer))

        arguments = tuple(watched if value is closure else value for value in args)
        return arguments, {name: watched if value is closure else value for name, value in kwargs.items()}

    def _evaluated(self, trainer: Trainer) -> None:
        """A closure has run: the optimizer uses the gradients that it left."""
        mixed = tuple(slot for slot in trainer.slots if slot.mixed is not None)
        event = Step(trainer, trainer.spot, (), (), mixed, False, True)
        self._recorder.tell("evaluated", event)
        for slot in trainer.slots:
            slot.used |= {trainer.key}
            slot.mixed = None

    def _step_begins(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        known = len(self._recorder.book.trainers)
        trainer = self._recorder.book.trainer(optimizer)
        if len(self._recorder.book.trainers) != known:
            self._recorder.book.index()
        if self._recorder.running is not None:
            delivered(self._recorder.book, self._recorder.running, trainer.slots)
        else:
            synchronize(trainer.slots, added_onto=False)
        having = [slot for slot in trainer.slots if slot.seen is not None]
        event = Step(
            trainer=trainer,
            spot=here(),
            fresh=tuple(slot for slot in having if trainer.key not in slot.used),
            stale=tuple(slot for slot in having if trainer.key in slot.used),
            mixed=tuple(slot for slot in having if slot.mixed is not None),
            in_pass=self._recorder.running is not None,
            closure=any(map(callable, (*args[1:], *kwargs.values()))),
        )
        trainer.spot = event.spot
        self._recorder.tell("step_begins", event)
        for slot in trainer.slots:
            slot.erased, slot.erased_at, slot.thrown = (), None, ()
        self._recorder.stepping, self._step = True, event

    def step_post(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._recorder.elsewhere() or _is_nested(optimizer, sys._getframe(1)):
            return
        self._recorder.stepping = False
        self._come_back()
        with self._recorder.aside():
            self._step_ended(self._recorder.book.trainer(optimizer))

    def _come_back(self) -> None:
        if self._left and self._left.pop() and self._recorder.operations is not None:
            self._recorder.operations.step_back()

    def _step_ended(self, trainer: Trainer) -> None:
        for slot in trainer.slots:
            slot.seen = slot.state()
            if slot.seen is not None:
                slot.used |= {trainer.key}
                slot.mixed = None
        self._count(trainer)

    def _count(self, trainer: Trainer) -> None:
        trainer.steps += 1
        self._recorder.clock.steps = max(self._recorder.clock.steps, trainer.steps)
        if self._recorder.clock.steps == trainer.steps:
            self._recorder.clock.marks = [*self._recorder.clock.marks[-7:], sequence_now()]
        self._recorder.tell("step_ended", self._step)
        if trainer.steps >= self._recorder.full_steps:
            self._recorder.end_full()

    def watch_by_hand(self, received: Iterable[Slot]) -> None:
        """Remember the values of what received a gradient, where no optimizer is at work."""
        if all(key == 0 for key in self._recorder.book.trainers):
            for slot in received:
                slot.mark()

    def by_hand(self) -> None:
        """Find out whether the learner's own code moved parameters since the last pass: then that was a step."""
        book = self._recorder.book
        if any(key != 0 for key in book.trainers):
            return
        moved = [slot for slot in book.live() if slot.content and slot.moved_since()]
        if not moved:
            return
        trainer = book.hand()
        trainer.slots = moved
        fresh = tuple(slot for slot in moved if 0 not in slot.used)
        mixed = tuple(slot for slot in moved if slot.mixed is not None)
        stale = tuple(slot for slot in moved if 0 in slot.used)
        self._step = Step(trainer, None, fresh, stale, mixed, False, False)
        self._recorder.tell("step_begins", self._step)
        for slot in moved:
            slot.used |= {0}
            slot.mixed = None
        self._count(trainer)

    def made_optimizer(self, original: Callable[..., None], optimizer: Any, *args: Any, **kwargs: Any) -> None:
        """Note where an optimizer was made, or a scheduler."""
        original(optimizer, *args, **kwargs)
        spot = here()
        if spot is not None:
            self._recorder.book.made[optimizer] = spot
            if isinstance(optimizer, torch.optim.Optimizer):
                self._recorder.book.rates[optimizer] = [group.get("lr") for group in optimizer.param_groups]
            self._recorder.begin_again()

    def zero(self, original: Callable[..., None], owner: Any, *args: Any, **kwargs: Any) -> None:
        operations = None if self._recorder.elsewhere() else self._recorder.operations
        left = operations is not None and operations.step_aside()
        try:
            original(owner, *args, **kwargs)
        finally:
            if left and operations is not None:
                operations.step_back()
        if self._recorder.elsewhere() or self._recorder.running is not None:
            return
        if isinstance(owner, torch.nn.Module):
            slots: Iterable[Slot | None] = [self._recorder.book.find(p) for p in owner.parameters()]
        else:
            slots = self._recorder.book.trainer(owner).slots
        spot = here()
        with self._recorder.aside():
            for slot in slots:
                if slot is not None:
                    slot.clear(spot)
                    slot.seen = slot.state()

    def schedule(self, original: Callable[..., Any], scheduler: Any, *args: Any, **kwargs: Any) -> Any:
        if self._scheduling:  # a schedule made of others lets them go on
            return original(scheduler, *args, **kwargs)
        if not getattr(scheduler, "_is_initial", False):
            with self._recorder.aside():
                self._recorder.tell("scheduled", scheduler, here())
        self._scheduling = True
        try:
            result = original(scheduler, *args, **kwargs)
        finally:
            self._scheduling = False
        if isinstance(scheduler, ReduceLROnPlateau):
            with self._recorder.aside():
                self._recorder.tell("measured", scheduler, kwargs.get("metrics", next(iter(args), math.nan)))
        return result


def _is_nested(optimizer: Any, wrapper: FrameType) -> bool:
    """Say whether a step is a part of another of the same optimizer: one of one's own that calls `super().step()`.

    `wrapper` is the frame of PyTorch's function around each class's step, which calls the hooks.
    """
    frame = wrapper.f_back
    while frame is not None:
        if frame.f_code is wrapper.f_code and frame.f_locals.get("self") is optimizer:
            return True
        frame = frame.f_back
    return False
