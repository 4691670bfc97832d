"""Optimizers that trained a model, and go on with its tensors when another model has taken its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from course_utils.audit.book import Slot, Trainer, listed
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Pass, Step
from course_utils.audit.source import first_assigned

_STEPS = 3


@dataclass
class _Alone:
    """The last steps of an optimizer, as long as they found no new gradient and others got some."""

    steps: int = 0
    reached: set[int] = field(default_factory=set)


class Outlived:
    """Part of a check: steps without new gradients, while passes deliver to parameters that nobody holds."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._received: tuple[Slot, ...] = ()  # what the last pass before a step delivered to
        self._alone: dict[int, _Alone] = {}

    def passed(self, event: Pass) -> None:
        self._received = event.received

    def stepped(self, event: Step) -> None:
        key, received, self._received = event.trainer.key, self._received, ()
        if key == 0 or event.closure or any(slot.content or not slot.is_zero() for slot in event.fresh):
            self._alone.pop(key, None)
            return
        reached = {slot.key for slot in received if slot.is_parameter}
        if reached and not reached & self._check.book.held():
            alone = self._alone.setdefault(key, _Alone())
            alone.steps += 1
            alone.reached |= reached

    def found(self) -> Iterator[Found]:
        by_key = {slot.key: slot for slot in self._check.book.live()}
        held = self._check.book.held()
        for trainer in self._check.book.trainers.values():
            alone = self._alone.get(trainer.key)
            if alone is None or alone.steps < _STEPS or not any(slot.received for slot in trainer.slots):
                continue
            found = [by_key[key] for key in sorted(alone.reached - held) if key in by_key]
            shapes = {slot.shape for slot in trainer.slots}
            if found and not any(slot.has_moved() or slot.shape not in shapes for slot in found):
                yield self._of_before(trainer, found, alone.steps)

    def _of_before(self, trainer: Trainer, slots: list[Slot], times: int) -> Found:
        model = self._check.book.model_of(slots[0].owner)
        name, owner, optimizer = trainer.name or "optimizer", (model.name if model else "") or "model", trainer.ref()
        return self._check.say(
            "other-tensors",
            (trainer.made and first_assigned(owner, trainer.made)) or trainer.made or trainer.spot,
            f"{name} still holds the tensors of the model before: its last {times} steps found no new gradient",
            f"The passes reach {listed(slots)}, which {name} was never given: they keep their values. Its own "
            "load_state_dict gives an optimizer numbers back, and no other parameters.",
            f"{name} = torch.optim.{type(optimizer).__name__}({owner}.parameters(), ...)  # after the new {owner}",
            times=times,
            about={slot.key for slot in (*trainer.slots, *slots)} | {trainer.key},
            names=(name,),
        )
