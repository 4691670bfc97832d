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
_LOOKS = 20  # so many steps are looked at
_STEPS = 5  # so many must have had a gradient and a rate
_SHARE = 0.95  # of the elements with a gradient must never have moved


@dataclass
class _Looked:
    slot: Slot
    first: torch.Tensor  # a sample of its value before the first step that could move it
    asked: torch.Tensor  # which elements of the sample had a gradient that is not zero
    steps: int = 0


@dataclass
class _Watched:
    trainer: Trainer
    spot: Spot | None = None
    rate: float = 0.0
    looked: dict[int, _Looked] = field(default_factory=dict)


class Rounding(Check):
    """Which elements of parameters in half precision ever move, of those that get a gradient."""

    codes: ClassVar = ("update-lost",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._watched: dict[int, _Watched] = {}

    def step_begins(self, event: Step) -> None:
        optimizer = event.trainer.ref()
        # An optimizer from elsewhere may keep the exact values for itself.
        if optimizer is None or event.trainer.steps >= _LOOKS or not _is_plain(optimizer):
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

    def found(self) -> Iterator[Found]:
        for watched in self._watched.values():
            asked, still, moved = 0, 0, set()
            every = [it for it in watched.looked.values() if it.steps >= _STEPS and it.slot.tensor is not None]
            for it in every:
                same = sampled(it.slot.tensor) == it.first  # type: ignore[arg-type]
                asked += int(it.asked.sum())
                still += int((same & it.asked).sum())
                moved |= {it.slot.key} if bool((~same).any()) else set()
            if not asked or still < _SHARE * asked:
                continue
            slots = [it.slot for it in every]
            kind = str(slots[0].tensor.dtype).removeprefix("torch.")  # type: ignore[union-attr]
            yield self.say(
                "update-lost",
                cast_before(watched.spot) or watched.spot,
                f"{listed(slots)} are {kind}, and the steps of {watched.trainer.name or 'optimizer'} are too small for "
                f"it: {100 * still // asked} of 100 elements never moved",
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
