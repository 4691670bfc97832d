"""Steps too small for the numbers that they are added to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import torch

from course_utils.audit.book import Slot, Trainer, listed, sampled
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Step
from course_utils.audit.expressions import cast_before
from course_utils.audit.lines import Spot, is_torch

_LOW = (torch.bfloat16, torch.float16)
_LOOKS = 20  # so many steps are looked at, of those at about the largest rate so far
_STEPS = 5  # so many must have had a gradient and a rate
_SHARE = 0.95  # of the elements with a gradient must never have moved
_STILL = 0.8  # or so many of them in each step


@dataclass
class _Looked:
    slot: Slot
    first: torch.Tensor  # a sample of its value before the first step that could move it
    asked: torch.Tensor  # which elements of the sample had a gradient that is not zero
    steps: int = 0
    before: torch.Tensor | None = None  # the sample before the step that is being made
    now: torch.Tensor | None = None  # which of its elements have a gradient in it


@dataclass
class _Watched:
    trainer: Trainer
    spot: Spot | None = None
    rate: float = 0.0
    peak: float = 0.0  # the largest rate of all steps
    looks: int = 0
    asked: int = 0  # elements that a step at about the largest rate so far should have moved, all steps together
    still: int = 0  # of them those that stayed as they were
    looked: dict[int, _Looked] = field(default_factory=dict)


class Rounding(Check):
    """Which elements of parameters in half precision ever move, of those that get a gradient."""

    codes: ClassVar = ("update-lost",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._watched: dict[int, _Watched] = {}

    def step_begins(self, event: Step) -> None:
        optimizer = event.trainer.ref()
        watched = self._watched.get(event.trainer.key)
        if watched is not None and optimizer is not None:
            watched.peak = max(watched.peak, *(float(group.get("lr") or 0.0) for group in optimizer.param_groups))
            if watched.peak > 2 * watched.rate:
                watched.asked = watched.still = watched.looks = 0  # it was warming up
        looks = event.trainer.steps if watched is None else watched.looks
        # An optimizer from elsewhere may keep the exact values for itself.
        if optimizer is None or looks >= _LOOKS or not _is_plain(optimizer):
            return
        for group in optimizer.param_groups:
            rate = float(group.get("lr") or 0.0)
            for parameter in group["params"] if rate else ():
                slot = self.book.find(parameter)
                grad = parameter.grad
                if slot is None or grad is None or grad.is_sparse or parameter.dtype not in _LOW:
                    continue
                asked = sampled(grad) != 0
                if not bool(asked.any()):
                    continue
                watched = self._watched.setdefault(event.trainer.key, _Watched(event.trainer))
                watched.spot, watched.rate = event.trainer.made or event.spot, max(watched.rate, rate)
                looked = watched.looked.get(slot.key)
                if looked is None:
                    looked = watched.looked[slot.key] = _Looked(slot, sampled(parameter), torch.zeros_like(asked))
                looked.asked |= asked
                looked.steps += 1
                looked.before, looked.now = sampled(parameter), asked
        if watched is not None:
            watched.looks += 1

    def step_ended(self, event: Step) -> None:
        watched = self._watched.get(event.trainer.key)
        for it in watched.looked.values() if watched is not None else ():
            leaf, before, asked = it.slot.tensor, it.before, it.now
            it.before = it.now = None
            if watched is not None and leaf is not None and before is not None and asked is not None:
                watched.asked += int(asked.sum())
                watched.still += int(((sampled(leaf) == before) & asked).sum())

    def found(self) -> Iterator[Found]:
        for watched in self._watched.values():
            asked, still, moved = 0, 0, set()
            every = [it for it in watched.looked.values() if it.steps >= _STEPS and it.slot.tensor is not None]
            for it in every:
                same = sampled(it.slot.tensor) == it.first  # type: ignore[arg-type]
                asked += int(it.asked.sum())
                still += int((same & it.asked).sum())
                moved |= {it.slot.key} if bool((~same).any()) else set()
            never = asked and still >= _SHARE * asked
            # A step that is rounded away now and then is none of a schedule's small ones.
            often = every and watched.still >= _STILL * watched.asked and watched.peak <= 2 * watched.rate
            if not asked or not (never or often):
                continue
            what = f"{100 * still // asked} of 100 elements never moved"
            if not never:
                what = f"each leaves {100 * watched.still // watched.asked} of 100 elements as they were"
            slots = [it.slot for it in every]
            kind = str(slots[0].tensor.dtype).removeprefix("torch.")  # type: ignore[union-attr]
            yield self.say(
                "update-lost",
                cast_before(watched.spot) or watched.spot,
                f"{listed(slots)} are {kind}, and the steps of {watched.trainer.name or 'optimizer'} are too small for "
                f"it: {what}",
                f"{watched.trainer.steps} steps with gradients that are not zero and a rate of {watched.rate:g} were "
                "rounded away: a number of this type has 8 bits (bfloat16) or 11 bits (float16), and less than half of "
                "its last bit added to it leaves it as it is.",
                "keep the parameters in float32, and compute in the smaller type: "
                f"torch.autocast(device_type, dtype=torch.{kind})",
                times=watched.trainer.steps,
                about={slot.key for slot in slots},
                names=[slot.name for slot in slots],
            )


def _is_plain(optimizer: torch.optim.Optimizer) -> bool:
    code = getattr(type(optimizer).step, "__wrapped__", type(optimizer).step).__code__
    return is_torch(code.co_filename)
