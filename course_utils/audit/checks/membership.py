"""Parameters that no optimizer holds, and optimizers that hold other tensors than those that are trained."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

import torch

from course_utils.audit.book import Model, Slot, Trainer, listed
from course_utils.audit.check import Check, Found
from course_utils.audit.checks.outlived import Outlived
from course_utils.audit.classes import assigned_anywhere
from course_utils.audit.derived import copies_of, derived_from, plain_list_of
from course_utils.audit.events import Call, Pass, Step
from course_utils.audit.lines import Spot, name_of
from course_utils.audit.mentions import is_differentiated
from course_utils.audit.source import first_assigned, replaced_parts, text_at

# Networks that are asked, and not trained, are called so.
_REFERENCE = re.compile(r"target|teacher|(^|_)ema|ref(erence)?($|_)|pretrained|frozen|oracle|judge|reward|vgg|lpips")

# So many passes must have delivered a gradient before its loss says anything.
_PASSES = 3
_LARGE = 20  # with more parameters, a whole network that was trained elsewhere, and is used as a measure


class Membership(Check):
    """Who receives gradients, and who is held by an optimizer that makes steps."""

    codes: ClassVar = ("not-in-optimizer", "other-tensors")

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._outlived = Outlived(self)
        self._last: Spot | None = None
        self._strays: dict[int, Slot] = {}  # parameters in a graph that no known model has
        self._fresh: Counter[tuple[int, ...]] = Counter()  # parameters that nobody holds, met after the first step
        self._reached: dict[int, set[int]] = {}  # what the first steps of a trainer found new gradients for
        self._handed: Counter[int] = Counter()  # steps of a trainer with gradients that no pass delivered
        self._begun: dict[int, int] = {}  # how many steps there were when a parameter got its first gradient
        self._acted: dict[int, int] = {}  # and when a trainer made its last
        self._in_training: Counter[int] = Counter()  # recorded calls of a model in training mode

    def called(self, event: Call) -> None:
        self._in_training[event.model.key] += event.training and event.grad

    def pass_begins(self, event: Pass) -> None:
        if event.accumulate and self.clock.steps < 3:
            for _, leaf in event.graph.leaves:
                slot = self.book.slot(leaf)
                if slot.owner is None:
                    slot.name = slot.name or name_of(leaf) or ""
                    self.book.keep(leaf)
                    if slot.is_parameter:
                        self._strays[slot.key] = slot

    def pass_ended(self, event: Pass) -> None:
        self._outlived.passed(event)
        self._last = event.spot or self._last
        for slot in event.received:
            slot.remember()
            self._begun.setdefault(slot.key, self.clock.steps)
            if slot.received == 1 and slot.is_parameter and self.clock.steps and slot.key not in self.book.held():
                self._fresh[slot.shape] += 1

    def step_begins(self, event: Step) -> None:
        self._outlived.stepped(event)
        self._acted[event.trainer.key] = self.clock.steps
        for slot in event.trainer.slots:
            if slot.received == 0:
                slot.remember()
        if event.trainer.steps < _PASSES:
            self._reached.setdefault(event.trainer.key, set()).update(slot.key for slot in event.fresh)
        self._handed[event.trainer.key] += any(slot.received == 0 for slot in event.fresh)

    def found(self) -> Iterator[Found]:
        yield from self._outlived.found()
        trainers = [trainer for trainer in self.book.trainers.values() if trainer.steps >= 2]
        # Where the learner hands gradients over, as to exact copies of rounded parameters, no pass has to reach them.
        trainers = [it for it in trainers if self._handed[it.key] < 2 or not self._of_others(it)]
        if not trainers:
            return
        held = self.book.held()
        outside = [slot for slot in self.book.live() if slot.key not in held and slot.received >= _PASSES]
        still = [slot for slot in outside if not slot.has_moved()]
        idle = [slot for slot in still if slot.is_parameter]
        others = [trainer for trainer in trainers if self._of_others(trainer)]
        for trainer in others:
            bare = not any(slot.is_parameter for slot in trainer.slots)
            copies = copies_of(trainer, still)
            plain = copies or ([slot for slot in still if slot.name] if bare else [])
            yield from self._other_tensors(trainer, idle or plain, bool(copies) and not idle)
        if len(others) == len(trainers):
            return
        partly = {slot.owner for trainer in trainers for slot in trainer.slots if slot.received}
        yield from self._exchanged(trainers)
        strays = [slot for slot in idle if slot.key in self._strays and slot.owner is None]
        if strays:
            yield self._stray(strays, trainers)
        plain = [slot for slot in still if not slot.is_parameter]
        if plain and not any(slot.is_parameter for trainer in trainers for slot in trainer.slots):
            yield self._forgotten(plain, trainers, None)
        else:
            yield from self._plain_attributes(plain, trainers)
        known = {model.key: model for model in self.book.models.values()}
        named = [slot for slot in idle if slot.owner is not None and slot not in strays]
        for key in dict.fromkeys(slot.owner for slot in named):
            mine = [slot for slot in named if slot.owner == key]
            model = known.get(key)  # type: ignore[arg-type]
            if key in partly or (None not in partly and model is not None and self._is_trained_alone(model)):
                yield self._forgotten(mine, trainers, model)

    def _exchanged(self, trainers: list[Trainer]) -> Iterator[Found]:
        """Parts of models that were replaced again and again: what stands there now was hardly ever reached."""
        held, present = self.book.held(), {slot.key for it in self.book.models.values() for slot in it.slots}
        lost = [(it, slot) for it in trainers for slot in it.slots if slot.received and slot.key not in present]
        for model in self.book.models.values() if lost else ():
            for slot in model.slots:
                old = next((it for it, was in lost if was.shape == slot.shape and was.name == slot.name), None)
                if (
                    old is not None
                    and slot.key not in held
                    and self._fresh[slot.shape] >= 2
                    and slot.received < _PASSES
                ):
                    made = old.made or old.spot
                    found = self._replacement(slot, made, model.name) if made is not None else None
                    if found is not None:
                        yield self._forgotten_again(slot, old, found)

    def _forgotten_again(self, slot: Slot, trainer: Trainer, spot: Spot) -> Found:
        name = trainer.name or "optimizer"
        return self.say(
            "not-in-optimizer",
            spot,
            f"no optimizer holds {slot.name}: it is replaced here again and again",
            f"{name} was given the tensor that stood there first, and still makes steps for that one. What stands in "
            "the model now is another, and nothing moves it.",
            "with torch.no_grad():\n    layer.weight.copy_(...)  # new values for the same parameter",
            level="error",
            times=trainer.steps,
            about={slot.key},
            names=(slot.name,),
        )

    def _of_others(self, trainer: Trainer) -> bool:
        """Say whether nothing that an optimizer holds was ever reached, though it wants to be."""
        return bool(trainer.slots) and not any(slot.received or slot.is_frozen() for slot in trainer.slots)

    def _is_trained_alone(self, model: Model) -> bool:
        """Say whether a model that no optimizer knows is used as one that learns: in training mode, with a name."""
        module = model.ref()
        if module is None or self._in_training[model.key] < _PASSES or len(list(module.parameters())) > _LARGE:
            return False
        shapes = [slot.shape for slot in model.slots]
        held = self.book.held()
        twins = (it for it in self.book.models.values() if it is not model and it.slots)
        followed = any([it.shape for it in twin.slots] == shapes and twin.slots[0].key in held for twin in twins)
        return not followed and not _REFERENCE.search(model.name)

    def _other_tensors(self, trainer: Trainer, idle: list[Slot], copied: bool = False) -> Iterator[Found]:
        if not idle:
            return
        name = trainer.name or "optimizer"
        made = trainer.made
        yield self.say(
            "other-tensors",
            (made and first_assigned(idle[0].name, made)) or made or trainer.spot,
            f"{name} holds tensors that no pass reaches; what the passes reach it does not hold",
            f"Gradients went to {listed(idle)}. {name} holds {len(trainer.slots)} other tensors: "
            + ("those that these were copied or stacked from." if copied else "those of another model, or copies made ")
            + ("" if copied else "before the model was changed.")
            + " Nothing that is trained ever moved.",
            f"{name} = torch.optim.{self._kind(trainer)}(params.values(), ...)  # of the copies that are called"
            if copied
            else f"{name} = torch.optim.{self._kind(trainer)}({self._owner(idle)}.parameters(), ...)  "
            "# after the model's last change",
            times=trainer.steps,
            about={slot.key for slot in (*trainer.slots, *idle)} | {trainer.key},
            names=(name,),
        )

    def _owner(self, slots: list[Slot]) -> str:
        model = self.book.model_of(slots[0].owner)
        return (model.name if model else "") or "model"

    def _kind(self, trainer: Trainer) -> str:
        optimizer = trainer.ref()
        return type(optimizer).__name__ if optimizer is not None else "SGD"

    def _forgotten(self, slots: list[Slot], trainers: list[Trainer], model: Model | None) -> Found:
        trainer = self._nearest(slots, trainers)
        present = {slot.key for it in self.book.models.values() for slot in it.slots}
        reached = self._reached.get(trainer.key, set())
        orphans = [it for it in trainer.slots if it.key not in present and not (it.received and it.key in reached)]
        replaced = bool(orphans) and len(orphans) <= len(slots) + 1
        made, spot = trainer.made, trainer.made or trainer.spot
        name, owner = trainer.name or "optimizer", (model.name if model else "") or "model"
        if replaced and made is not None:
            spot = self._replacement(slots[0], made, owner) or spot
        why = f"They received a gradient in each pass, and kept their first values: {name} was not given them."
        if replaced:
            why += f" It holds {len(orphans)} tensors that belong to no model any more: a layer was replaced later."
        return self.say(
            "not-in-optimizer",
            spot,
            f"no optimizer holds {listed(slots)}",
            why,
            f"{name} = torch.optim.{self._kind(trainer)}({owner}.parameters(), ...)  # after {owner}'s last change",
            level="error" if replaced else "likely",
            times=max(slot.received for slot in slots),
            about={slot.key for slot in (*slots, *orphans)},
            names=tuple(slot.name for slot in slots),
        )

    def _nearest(self, slots: list[Slot], trainers: list[Trainer]) -> Trainer:
        """Return the trainer that holds most of what belongs with some slots, of several the one made last.

        One that makes no step any more when they get their first gradient is no such.
        """
        owners = {None, *(slot.owner for slot in slots)}
        begun = min(self._begun.get(slot.key, 0) for slot in slots)
        acting = [it for it in trainers if self._acted[it.key] >= begun]
        return max(reversed(acting or trainers), key=lambda it: sum(slot.owner in owners for slot in it.slots))

    def _replacement(self, slot: Slot, made: Spot, owner: str) -> Spot | None:
        """Return the line that replaced a part of the model: the first after the optimizer's, or the only one."""
        whole = slot.name.removeprefix(f"{owner}.")
        part = whole.rpartition(".")[0]
        parts = (replaced_parts(made.file, part) if part else []) or replaced_parts(made.file, whole)
        after = [spot for spot in parts if spot.line > made.line]
        return next(iter(after or parts), None)

    def _stray(self, slots: list[Slot], trainers: list[Trainer]) -> Found:
        trainer = self._nearest(slots, trainers)
        derived = derived_from(self.book.models.values(), slots)
        if derived is not None:
            about = {slot.key for slot in slots}
            times = max(slot.received for slot in slots)
            return self.say("not-in-optimizer", *derived, level="error", times=times, about=about)
        spot, holder = plain_list_of(self.book, slots)
        where = f" They stand in {holder}, a plain list or dict, which a module does not look into." if holder else ""
        return self.say(
            "not-in-optimizer",
            spot or trainer.made or trainer.spot,
            f"{len(slots)} parameters that the passes reach belong to no model and no optimizer",
            f"They received a gradient in each pass, and kept their first values.{where}",
            "self.layers = nn.ModuleList([...])  # registers them; or pass them to the optimizer as well",
            level="error" if holder else "likely",
            times=max(slot.received for slot in slots),
            about={slot.key for slot in slots},
        )

    def _plain_attributes(self, slots: list[Slot], trainers: list[Trainer]) -> Iterator[Found]:
        """Tensors that a trained module made to learn, and that are no parameters of it."""
        wanted = {slot.key: slot for slot in slots}
        held = self.book.held()
        for model in self.book.models.values() if wanted else ():
            module = model.ref()
            if model.slots and not any(slot.key in held for slot in model.slots):
                continue  # nobody trains it
            for part in module.modules() if module is not None else ():
                for name, value in list(vars(part).items()):
                    found = self.book.find(value) if isinstance(value, torch.Tensor) else None
                    made = assigned_anywhere(type(part), f"self.{name}") if found and found.key in wanted else None
                    if found is None or made is None or "requires_grad" not in text_at(made):
                        continue
                    # A single number may be a switch, by which a penalty takes its derivative.
                    if value.numel() > 1 or not is_differentiated(made.file, name):
                        wanted.pop(found.key)
                        yield self._plain(found, made, name, trainers)

    def _plain(self, slot: Slot, made: Spot, name: str, trainers: list[Trainer]) -> Found:
        return self.say(
            "not-in-optimizer",
            made,
            f"self.{name} requires a gradient and is no parameter: no optimizer holds it",
            f"It received a gradient in each pass, and kept its first value. A module's parameters() gives what was "
            f"made with nn.Parameter, and {trainers[0].name or 'the optimizer'} was made of those.",
            f"self.{name} = nn.Parameter(...)",
            times=slot.received,
            about={slot.key},
            names=(f"self.{name}",),
        )
