"""Freezing that reaches no parameter: a name that none of them has, or tensors that only share their memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from course_utils.audit.book import Model, Slot, listed, listed_names
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call, Op, Pass, Step
from course_utils.audit.filters import Filter, filters
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import ran

_MOST = 500


class Filters(Check):
    """What was to be frozen, and was not found."""

    codes: ClassVar = ("freezes-nothing",)
    functions: ClassVar = frozenset({"requires_grad_", "requires_grad.__set__"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._seen: set[Spot] = set()  # lines of passes and steps, and of calls before them
        self._told: list[tuple[StorageWeakRef, Spot]] = []  # memory of tensors that are no parameters

    def function(self, event: Op) -> None:
        tensor, spot = event.args[0] if event.args else None, event.spot
        if spot is None or not isinstance(tensor, torch.Tensor) or isinstance(tensor, torch.nn.Parameter):
            return
        if not tensor.requires_grad and tensor.is_leaf and len(self._told) < _MOST and not self.clock.steps:
            self._told.append((StorageWeakRef(tensor.untyped_storage()), spot))

    def pass_begins(self, event: Pass) -> None:
        if event.spot is not None:
            self._seen.add(event.spot)

    def step_begins(self, event: Step) -> None:
        if event.spot is not None:
            self._seen.add(event.spot)

    def called(self, event: Call) -> None:
        if not self.clock.steps:
            self._seen.update(event.spots)

    def found(self) -> Iterator[Found]:
        yield from self._shared()
        models = [it for it in self.book.models.values() if it.slots and it.ref() is not None]
        for file, scope in ran(sorted(self._seen)) if models else ():
            for it in filters(file, scope):
                names = self._names(it, models)
                if names and not any(it.takes(name) for name in names):
                    yield self._empty(it, names)

    def _names(self, one: Filter, models: list[Model]) -> list[str]:
        """Return the names that a loop goes through, for the models that it may be about."""
        owner, _, rest = one.owner.partition(".")
        mine = [it for it in models if it.name in (one.owner, owner)]
        if mine and one.owner == mine[0].name:
            rest = ""
        found: list[str] = []
        for model in mine or models:
            module = model.ref()
            try:
                part = module.get_submodule(rest) if module is not None and mine and rest else module
            except AttributeError:
                return []
            if part is not None:
                found += [name for name, _ in getattr(part, one.method)()]
        return found

    def _empty(self, one: Filter, names: list[str]) -> Found:
        names = [name for name in dict.fromkeys(names) if name]
        shown = listed_names(names, 4)
        return self.say(
            "freezes-nothing",
            one.spot,
            f"no name of {one.owner} fits: nothing is frozen here",
            f"`{one.text}` is true for none of the {len(names)} names: {shown}.",
            f"print([name for name, _ in {one.owner}.{one.method}()])  # and choose among them",
            certain=False,
            names=(one.owner,),
        )

    def _shared(self) -> Iterator[Found]:
        by_memory = {
            slot.tensor.untyped_storage()._cdata: slot
            for slot in self.book.live()
            if slot.tensor is not None and slot.is_parameter and slot.tensor.requires_grad and slot.received
        }
        lines: dict[Spot, list[Slot]] = {}
        for storage, spot in self._told:
            slot = by_memory.get(storage.cdata)
            if slot is not None and not storage.expired():
                lines.setdefault(spot, []).append(slot)
        for spot, slots in lines.items():
            yield self.say(
                "freezes-nothing",
                spot,
                f"{listed(slots)} learn on: what was frozen here only shares their memory",
                "state_dict(), .data and detach() give other tensors, with a requires_grad of their own, and it is "
                "False to begin with. The parameters keep theirs.",
                "for p in model.parameters():\n    p.requires_grad_(False)",
                about={slot.key for slot in slots},
                names=[slot.name for slot in slots],
            )
