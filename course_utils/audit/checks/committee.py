"""Members of an ensemble that begin alike and are shown the same: they stay one and the same model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import nn

from course_utils.audit.book import Slot, sampled
from course_utils.audit.check import Check, Found
from course_utils.audit.committees import made_alike
from course_utils.audit.events import Pass
from course_utils.audit.reading import scopes_of

_MOST = 2_000  # parameters that are looked at


class Committee(Check):
    """The value and the gradient of each parameter when a pass reaches it for the second time."""

    codes: ClassVar = ("members-alike",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._second: dict[int, tuple[float, float]] = {}  # by a slot's key

    def pass_ended(self, event: Pass) -> None:
        for slot in event.received if len(self._second) < _MOST else ():
            if slot.received == 2 and slot.is_parameter:
                tensor = slot.tensor
                slope = None if tensor is None else tensor.grad
                if tensor is not None and slope is not None and not slope.is_sparse:
                    self._second[slot.key] = float(sampled(tensor).sum()), float(sampled(slope).sum())

    def found(self) -> Iterator[Found]:
        alike = next((it for it in self._groups() if len(it) > 1), None) if len(self._second) > 1 else None
        spot = made_alike(scopes_of(self.recorder)) if alike is not None else None
        if alike is None or spot is None:
            return
        about = {slot.key for slots in alike for slot in slots}
        yield self.say(
            "members-alike",
            spot,
            f"{len(alike)} members of an ensemble are one and the same model: they begin alike, and see the same",
            "They have the same first values, get the same gradients, and are equal to the last digit at the end. "
            "Their mean is what one of them gives, and how far they are apart, 0, says nothing.",
            "torch.manual_seed(k)  # another seed for each member, or none; and each member made anew",
            certain=False,
            times=len(alike),
            about=about,
        )

    def _groups(self) -> Iterator[list[list[Slot]]]:
        """Yield models, or members of a model's list, that are equal and went the same way."""
        modules = [it for model in self.book.models.values() if (it := model.ref()) is not None]
        yield from self._equal(modules)
        for module in modules:
            for part in module.modules():
                if isinstance(part, nn.ModuleList) and len(part) > 1:
                    yield from self._equal(list(part))

    def _equal(self, modules: list[nn.Module]) -> Iterator[list[list[Slot]]]:
        ways: defaultdict[tuple[object, ...], list[list[Slot]]] = defaultdict(list)
        for module in modules:
            slots = [self.book.find(it) for it in module.parameters()]
            known = [it for it in slots if it is not None and it.key in self._second and it.has_moved()]
            if known and len(known) == len(slots):
                ways[tuple((it.shape, self._second[it.key]) for it in known)].append(known)
        for members in ways.values():
            first, *others = members
            same = [it for it in others if it[0].key != first[0].key and all(map(_is_equal, first, it))]
            yield [first, *same]


def _is_equal(one: Slot, other: Slot) -> bool:
    return one.tensor is not None and other.tensor is not None and torch.equal(one.tensor, other.tensor)
