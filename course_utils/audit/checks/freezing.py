"""Freezing: forgotten, or without effect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from course_utils.audit.book import Slot, Trainer, listed
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call, Op, Step
from course_utils.audit.finding import Level
from course_utils.audit.idle_parts import idle_parts
from course_utils.audit.lines import Spot, here
from course_utils.audit.modes import frozen_norms
from course_utils.audit.source import assignments_to, nearest

_MEANT = "requires_grad"


@dataclass
class _Norm:
    """A batch norm whose parameters are frozen, called in training mode."""

    name: str
    module: int  # the id of the module that was called
    weight: torch.Tensor
    first: torch.Tensor
    times: int = 0

    def stands_still(self) -> bool:
        """Say whether its weight kept its value: that of an average, as of a target network, follows another's."""
        return torch.equal(self.weight.detach(), self.first)


class Freezing(Check):
    """What was frozen, and whether it stayed as it was."""

    codes: ClassVar = ("frozen", "frozen-moves")
    functions: ClassVar = frozenset({"requires_grad_", "requires_grad.__set__", "zero_"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._frozen_at: dict[int, Spot | None] = {}
        self._again: set[int] = set()  # leaves that were told to freeze while they were frozen
        self._wanted: dict[int, int] = {}  # steps in which an optimizer found a leaf wanting a gradient
        self._still: dict[int, int] = {}  # steps since then in which it did not
        self._versions: dict[int, int] = {}
        self._made: dict[int, int] = {}  # the version of what is frozen, when a step found it first
        self._by_hand: set[int] = set()  # trainers whose frozen parameters are moved without any pass, on purpose
        self._moved: dict[int, int] = {}
        self._emptied: dict[int, tuple[Spot | None, int]] = {}  # gradients set to zero by hand: where, after which pass
        self._marked: set[int] = set()  # of them those whose values were kept before this step
        self._drift: dict[int, int] = {}  # steps in a row that moved a leaf whose gradient had been set to zero
        self._trained_at: dict[int, Spot] = {}  # by a module's id: where it was put into training mode
        self._norms: dict[tuple[int, str], _Norm] = {}

    def function(self, event: Op) -> None:
        tensor = event.args[0] if event.args else None
        if event.name == "zero_":
            self._emptying(tensor)
        elif isinstance(tensor, torch.Tensor) and tensor.is_leaf and not tensor.requires_grad:
            slot = self.book.slot(tensor)
            if self._wanted.get(slot.key) and self._still.get(slot.key):
                self._again.add(slot.key)
            self._frozen_at[slot.key] = event.spot

    def _emptying(self, grad: Any) -> None:
        for slot in self.book.live():
            leaf = slot.tensor
            if leaf is not None and leaf.grad is grad and slot.content and not slot.used:
                self._emptied[slot.key] = here(), self.clock.passes

    def _mark_emptied(self, event: Step) -> None:
        self._marked.clear()
        if self.recorder.operations is None:
            return  # who sets a gradient to zero is not seen any more
        if not any(slot.content and slot.key not in self._emptied for slot in event.fresh):
            return  # all of them: a step that was to be skipped
        for slot in event.trainer.slots:
            if self._emptied.get(slot.key, (None, -1))[1] == self.clock.passes:
                slot.mark()
                self._marked.add(slot.key)
            else:
                self._drift.pop(slot.key, None)

    def step_begins(self, event: Step) -> None:
        if self._emptied:
            self._mark_emptied(event)
        if any(map(_is_written, event.trainer.slots)):
            self._by_hand.add(event.trainer.key)
        for slot in event.trainer.slots:
            tensor = slot.tensor
            if tensor is None:
                continue
            if tensor.requires_grad:
                self._wanted[slot.key] = self._wanted.get(slot.key, 0) + 1
                self._still.pop(slot.key, None)
                continue
            self._still[slot.key] = self._still.get(slot.key, 0) + 1
            self._versions[slot.key] = tensor._version
            self._made.setdefault(slot.key, tensor._version)
            slot.remember_now()

    def step_ended(self, event: Step) -> None:
        for slot in event.trainer.slots if self._marked else ():
            if slot.key in self._marked and slot.moved_since():
                self._drift[slot.key] = self._drift.get(slot.key, 0) + 1
        for slot in event.trainer.slots:
            tensor = slot.tensor
            before = self._versions.pop(slot.key, None)
            if before is None or tensor is None or tensor._version == before or not slot.has_moved():
                continue
            if slot.seen is None:  # an optimizer that needs no gradient, or a closure that moved it
                self._by_hand.add(event.trainer.key)
            else:
                self._moved[slot.key] = self._moved.get(slot.key, 0) + 1

    def called(self, event: Call) -> None:
        if not event.grad or self.clock.calls > 200:
            return
        for name, part in frozen_norms(event.module) if event.active else ():
            norm = self._norms.setdefault(
                (event.model.key, name), _Norm(name, id(event.module), part.weight, part.weight.detach().clone())
            )
            norm.times += 1

    def mode_set(self, module: Any, training: bool, spot: Spot | None) -> None:
        if training and spot is not None:
            self._trained_at[id(module)] = spot

    def found(self) -> Iterator[Found]:
        for trainer in self.book.trainers.values():
            yield from self._of(trainer)
            drifting = [slot for slot in trainer.slots if self._drift.get(slot.key, 0) >= 3]
            if drifting:
                yield self._drifting(trainer, drifting)
        yield from self._statistics()

    def _of(self, trainer: Trainer) -> Iterator[Found]:
        if trainer.key in self._by_hand:
            return
        name = trainer.name or "optimizer"
        moved = [slot for slot in trainer.slots if slot.key in self._moved]
        if moved:
            yield self.say(
                "frozen-moves",
                self._line(moved),
                f"{name} moves {listed(moved)} although frozen",
                "Their requires_grad is False, but an old .grad is still there. A step uses whatever stands in .grad, "
                "with momentum and weight decay on top.",
                "p.grad = None  # where you freeze: optimizer.zero_grad(set_to_none=True) does it for all",
                times=max(self._moved[slot.key] for slot in moved),
                about={slot.key for slot in moved},
                names=[slot.name for slot in moved],
            )
        since = [slot for slot in trainer.slots if self._still.get(slot.key, 0) >= 2 and slot not in moved]
        if len(since) < len(trainer.slots):
            idle = list(self._idle(trainer, [slot for slot in since if not self._wanted.get(slot.key)]))
            yield from idle
            since = [slot for slot in since if not any(slot.key in it.about for it in idle)]
        before = [slot for slot in since if self._wanted.get(slot.key)]
        every = bool(since) and len(since) == len(trainer.slots)
        chosen = before or (since if every else [])
        if chosen:
            yield self.say(
                "frozen",
                self._line(chosen),
                f"{listed(chosen)} are frozen, and {name} still makes steps for them",
                f"They moved in the first {self._wanted[before[0].key]} steps and have stood still since: nothing "
                "set requires_grad back to True."
                if before
                else f"None of what {name} holds asks for a gradient, so its steps move nothing.",
                "p.requires_grad_(True)  # when they are to be trained again",
                level=self._gravity(chosen, before, every),
                certain=every,
                times=max(self._still[slot.key] for slot in chosen),
                about={slot.key for slot in chosen} | {trainer.key},
                names=[slot.name for slot in chosen],
            )
        elif since:
            yield self.say(
                "frozen",
                self._line(since),
                f"{name} holds {len(since)} parameters that are frozen: {listed(since)}",
                "They stay as they are. That is right for fine-tuning; it is said in case that it was not meant.",
                "p.requires_grad_(True)  # if they are to be trained",
                level="note",
                certain=False,
                times=max(self._still[slot.key] for slot in since),
                about={slot.key for slot in since},
                names=[slot.name for slot in since],
            )

    def _idle(self, trainer: Trainer, never: list[Slot]) -> Iterator[Found]:
        """What the optimizer was given by name, and never asked for a gradient, though nobody froze it."""
        unwritten = [slot for slot in never if slot.tensor is not None and slot.tensor._version == self._made[slot.key]]
        for part in idle_parts(trainer, unwritten, self.book.models.values(), self._frozen_at) if unwritten else ():
            yield self.say(
                "frozen",
                part.spot,
                part.headline,
                part.why,
                part.fix,
                times=max(self._still[slot.key] for slot in part.slots),
                about={slot.key for slot in part.slots},
                names=[slot.name for slot in part.slots],
            )

    def _drifting(self, trainer: Trainer, slots: list[Slot]) -> Found:
        optimizer = trainer.ref()
        decays = optimizer is not None and any(group.get("weight_decay") for group in optimizer.param_groups)
        name = trainer.name or "optimizer"
        return self.say(
            "frozen-moves",
            self._emptied[slots[0].key][0] or trainer.made,
            f"{name} moves {listed(slots)} although their gradient is set to zero",
            f"Zeros are a gradient, too: {name} adds its {'weight decay' if decays else 'momentum'} to them. "
            "Where .grad is None it leaves a parameter alone.",
            "p.requires_grad_(False)  # and p.grad = None; or leave it out of the optimizer",
            level="likely",
            times=max(self._drift[slot.key] for slot in slots),
            about={slot.key for slot in slots},
            names=[slot.name for slot in slots],
        )

    def _gravity(self, chosen: list[Slot], before: list[Slot], every: bool) -> Level:
        """Return how grave it is. What is frozen once, on the way, is a schedule as often as a slip."""
        alone = len(self.book.trainers) == 1
        if before and not (every and alone) and not any(slot.key in self._again for slot in before):
            return "note"
        return "error" if every else "likely"

    def _line(self, slots: list[Slot]) -> Spot | None:
        """Return where they were frozen: seen in the full tier, else as the source says."""
        seen = next((spot for slot in slots if (spot := self._frozen_at.get(slot.key)) is not None), None)
        if seen is not None:
            return seen
        trainer = next(iter(self.book.trainers.values()), None)
        near = trainer.spot if trainer else None
        return _frozen_near(near) or near

    def _statistics(self) -> Iterator[Found]:
        """Batch norm with frozen parameters in training mode: its statistics move all the same."""
        moving = [it for it in self._norms.values() if it.times >= 3 and it.stands_still()]
        if moving and any(trainer.steps >= 2 for trainer in self.book.trainers.values()):
            near = next((trainer.spot for trainer in self.book.trainers.values() if trainer.spot), None)
            yield self.say(
                "frozen-moves",
                self._trained_at.get(moving[0].module) or _frozen_near(near) or near,
                f"the running statistics of {moving[0].name or 'a batch norm'} move although its parameters are frozen",
                "requires_grad concerns parameters. In training mode a batch norm goes on averaging what it sees, so "
                "the frozen part gives other results after each step.",
                "module.eval()  # the frozen part, after each model.train()",
                level="likely",
                times=moving[0].times,
                names=[it.name for it in moving],
            )


def _is_written(slot: Slot) -> bool:
    """Say whether a frozen parameter's gradient was written by hand, as by an evolution strategy."""
    return slot.is_frozen() and (slot.touched or not slot.content) and not slot.is_zero()


def _frozen_near(spot: Spot | None) -> Spot | None:
    found = assignments_to(spot.file, (_MEANT, "requires_grad_")) if spot else []
    return nearest([place for place, _ in found], spot) if spot else None
