"""Losses that are computed in each step and belong to no pass, where parts of a model learn from nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from course_utils.audit.book import listed
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass
from course_utils.audit.lines import Spot
from course_utils.audit.source import bound_at, text_at

_TIMES = 3
_WAITING = 50
_LOSSES = frozenset(
    {
        *("cross_entropy", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "nll_loss", "kl_div"),
        *("binary_cross_entropy", "binary_cross_entropy_with_logits", "gaussian_nll_loss", "poisson_nll_loss"),
        *("cosine_embedding_loss", "triplet_margin_loss", "margin_ranking_loss", "hinge_embedding_loss"),
        *("multi_margin_loss", "soft_margin_loss", "ctc_loss", "multilabel_soft_margin_loss"),
    }
)


@dataclass
class _Computed:
    """One line that computes losses, and the leaves behind those of them that no pass ran through."""

    unused: frozenset[int] = frozenset()
    times: int = 0


class Unused(Check):
    """Which losses stand in no graph of a pass."""

    codes: ClassVar = ("loss-unused",)
    functions: ClassVar = _LOSSES

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._lines: dict[Spot, _Computed] = {}
        self._waiting: dict[int, tuple[Spot, frozenset[int]]] = {}  # by the number of a loss's node

    def function(self, event: Op) -> None:
        spot = event.spot
        if spot is None or event.ended <= event.began or not isinstance(event.out, torch.Tensor):
            return
        if len(self._waiting) < _WAITING:
            self._waiting[event.ended - 1] = spot, self.recorder.cuts.behind([event.out])

    def pass_begins(self, event: Pass) -> None:
        if not self._waiting:
            return
        for number in self._waiting.keys() & event.graph.numbers:
            del self._waiting[number]

    def step_ended(self, event: object) -> None:
        for spot, leaves in self._waiting.values():
            computed = self._lines.setdefault(spot, _Computed())
            computed.unused |= leaves
            computed.times += 1
        self._waiting.clear()

    def found(self) -> Iterator[Found]:
        trainers = [trainer for trainer in self.book.trainers.values() if trainer.steps >= _TIMES]
        waiting = {
            slot.key: slot
            for trainer in trainers
            for slot in trainer.slots
            if slot.received == 0 and slot.tensor is not None and slot.tensor.requires_grad
        }
        for spot, computed in self._lines.items():
            slots = [slot for key, slot in waiting.items() if key in computed.unused]
            if computed.times < _TIMES or not slots or not any(slot.received for slot in self.book.live()):
                continue
            if ".item()" in text_at(spot):
                continue  # it is a number, and may be added as one: the cut is what is said then
            name = bound_at(spot) or "the loss"
            yield self.say(
                "loss-unused",
                spot,
                f"{name} is computed in each step, and no backward pass runs through it",
                f"{listed(slots)} could learn from it and from nothing else. No gradient ever reached them: the loss "
                "that the pass starts from was made without this one, or another took its place.",
                f"total = total + {name if name.isidentifier() else 'this'}  # and the pass from the total",
                certain=False,
                times=computed.times,
                about={slot.key for slot in slots},
                names=[slot.name for slot in slots],
            )
