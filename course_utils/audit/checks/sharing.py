"""Two optimizers that move the same parameters, each against the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import torch

from course_utils.audit.book import Slot, Trainer, listed
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call, Pass, Step
from course_utils.audit.judged import Judged, Score

_LOOKS = 20  # so many steps of each optimizer are looked at
_TIMES = 3
_AGAINST = -0.2  # the cosine of two gradients that pull apart
_SHARE = 0.75


@dataclass
class _Shared:
    """What one optimizer holds whole, and another holds besides its own."""

    whole: Trainer
    more: Trainer
    both: list[Slot]
    reached: int = 0  # steps of the first whose pass went through what is the other's own
    compared: int = 0
    against: int = 0
    taught: dict[int, int] = field(default_factory=dict)  # by a model's key: where the first's step took its scores
    judged: int = 0  # steps of both that pushed the scores of what another model made
    turned: int = 0  # of them those that pushed them opposite ways


class Sharing(Check):
    """The gradients with which two optimizers move the parameters that both of them hold."""

    codes: ClassVar = ("held-twice",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._shared: dict[tuple[int, int], _Shared] = {}
        self._last: dict[tuple[int, int], tuple[int, torch.Tensor]] = {}  # who made the last step, and its gradient
        self._steps: dict[int, int] = {}
        self._judged = Judged()

    def _compares(self) -> bool:
        trainers = self.book.trainers
        return len(trainers) > 1 and any(self._steps.get(it.key, 0) <= _LOOKS for it in trainers.values())

    def called(self, event: Call) -> None:
        if self._compares():
            self._judged.called(event)

    def pass_begins(self, event: Pass) -> None:
        if self._compares():
            self._judged.pass_begins(event)

    def pass_ended(self, event: Pass) -> None:
        self._judged.pass_ended(event)

    def step_ended(self, event: Step) -> None:
        self._judged.signs.clear()

    def step_begins(self, event: Step) -> None:
        trainer = event.trainer
        made = self._steps[trainer.key] = self._steps.get(trainer.key, 0) + 1
        if made > _LOOKS or event.in_pass or len(self.book.trainers) < 2:
            return
        mine = {slot.key for slot in trainer.slots}
        for other in self.book.trainers.values():
            theirs = {slot.key for slot in other.slots}
            if other is trainer or not mine & theirs or mine == theirs:
                continue
            if mine < theirs:
                self._look(trainer, other, trainer)
            elif theirs < mine:
                self._look(other, trainer, trainer)

    def _look(self, whole: Trainer, more: Trainer, now: Trainer) -> None:
        pair = whole.key, more.key
        shared = self._shared.setdefault(pair, _Shared(whole, more, list(whole.slots)))
        self._compare_scores(shared, now)
        grads = [_gradient(slot) for slot in shared.both]
        if not any(grad is not None for grad in grads):
            return
        if now is whole:
            numbers = {number for slot in whole.slots for number in slot.content}
            own = {slot.key for slot in whole.slots}
            through = any(numbers & set(slot.content) for slot in more.slots if slot.key not in own)
            shared.reached += through
        flat = torch.cat([grad.reshape(-1) for grad in grads if grad is not None])
        last = self._last.get(pair)
        if last is not None and last[0] != now.key and last[1].shape == flat.shape:
            shared.compared += 1
            size = float(last[1].norm() * flat.norm())
            shared.against += size > 0 and float(last[1] @ flat) / size < _AGAINST
        self._last[pair] = now.key, flat.clone()

    def _compare_scores(self, shared: _Shared, now: Trainer) -> None:
        """Find out whether what the first optimizer teaches of the other's outputs is what that one takes back."""
        keys = {slot.key for slot in shared.both}
        for model in list(self.book.models.values()):
            if not model.slots or not keys >= {slot.key for slot in model.slots}:
                continue
            sign = self._judged.signs.get(Score(model.key, cut=now is shared.whole), 0)
            if sign and now is shared.whole:
                shared.taught[model.key] = sign
            elif sign and (taught := shared.taught.pop(model.key, 0)):
                shared.judged += 1
                shared.turned += taught != sign

    def found(self) -> Iterator[Found]:
        for shared in self._shared.values():
            often = shared.compared >= _TIMES and shared.reached >= _TIMES
            pulled = often and shared.against >= _SHARE * shared.compared
            turned = shared.judged >= _TIMES and shared.turned == shared.judged
            if not pulled and not turned:
                continue
            whole, more = shared.whole.name or "one optimizer", shared.more.name or "another"
            if whole == more:
                whole, more = "one optimizer", "another"
            yield self.say(
                "held-twice",
                shared.more.made or shared.more.spot,
                f"two optimizers move {listed(shared.both)}, each against the other",
                f"{more} holds all that {whole} trains, besides what is its own. "
                + (
                    "The gradients that they find there pull in opposite directions"
                    if pulled
                    else "Their losses push the scores of the same outputs in opposite directions"
                )
                + f": what {whole} learns in a step, {more} takes back in its own.",
                "torch.optim.Adam(critic.parameters())  # each optimizer the parameters of its own network only",
                times=shared.against if pulled else shared.turned,
                about={slot.key for slot in shared.both},
                names=[slot.name for slot in shared.both],
            )


def _gradient(slot: Slot) -> torch.Tensor | None:
    tensor = slot.tensor
    grad = None if tensor is None else tensor.grad
    return None if grad is None or grad.is_sparse else grad.detach().float()
