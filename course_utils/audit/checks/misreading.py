"""Data sets that give the same sample for every index, or the input of one with the target of another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op
from course_utils.audit.items import Item, item_of, other_index, two_indices
from course_utils.audit.lines import Spot, between
from course_utils.audit.loaders import fetching

_ROWS, _BATCHES, _LOOKS, _MOST = 4, 2, 8, 32
_VALUES = 2  # of which a sample that is no filler has more


@dataclass
class _Given:
    """What a data set gave: of how many batches, and the first sample of the first, while all were the same."""

    item: Item | None
    apart: tuple[tuple[Spot, str, str], ...] = ()
    first: dict[torch.Size, torch.Tensor] = field(default_factory=dict)  # by shape: of the fields, one each
    batches: int = 0
    rows: int = 0
    alike: bool = True


class Misreading(Check):
    """What samples are put together into batches, and which rows they were read from."""

    codes: ClassVar = ("sample-misread",)
    functions: ClassVar = frozenset({"stack"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._given: dict[int, _Given] = {}
        self._data: list[Any] = []  # kept, so that no other one gets its place

    def function(self, event: Op) -> None:
        if not event.args or not isinstance(event.args[0], list | tuple) or len(event.args[0]) < _ROWS:
            return
        at_work = fetching()
        if at_work is None:
            return
        given = self._of(at_work._dataset)
        rows = list(event.args[0])
        if given is None or given.item is None or given.batches >= _LOOKS or not given.alike:
            return
        indices = next((it for it in map(_fetched, between()) if it is not None), None)
        if indices is None or len(set(indices)) < len(indices) or len(indices) != len(rows):
            return
        if rows[0].numel() <= _VALUES:  # a label may well be the same for a while
            return
        if len(rows[0].unique()) > _VALUES:
            given.first.setdefault(rows[0].shape, rows[0].detach().clone())
        given.batches, given.rows = given.batches + 1, given.rows + len(rows)
        first = given.first.get(rows[0].shape)
        given.alike = first is not None and all(torch.equal(it, first) for it in rows)

    def _of(self, data: Any) -> _Given | None:
        known = self._given.get(id(data))
        if known is None and len(self._data) < _MOST:
            self._data.append(data)
            item = item_of(data)
            apart = tuple(two_indices(item, data)) if item is not None else ()
            known = self._given[id(data)] = _Given(item, apart)
        return known

    def found(self) -> Iterator[Found]:
        told: set[Spot] = set()
        for given in self._given.values() if self.clock.steps else ():
            for spot, mapped, plain in given.apart:
                if spot not in told:
                    told.add(spot)
                    yield self._two(spot, mapped, plain)
            line = other_index(given.item) if given.item is not None and given.alike else None
            if line is not None and given.first and given.batches >= _BATCHES and line not in told:
                told.add(line)
                yield self._one(line, given)

    def _one(self, spot: Spot, given: _Given) -> Found:
        return self.say(
            "sample-misread",
            spot,
            f"the data set gives the same sample for each index: {given.rows} samples of {given.batches} batches are "
            "one and the same",
            "What this line reads does not depend on the index that __getitem__ is given. The model is trained on one "
            "sample, and its loss falls all the same.",
            "return self.x[index], self.y[index]",
            times=given.rows,
        )

    def _two(self, spot: Spot, mapped: str, plain: str) -> Found:
        return self.say(
            "sample-misread",
            spot,
            f"the sample is {mapped}, and what goes with it is {plain}: two different rows",
            "One is read by the index itself, and the other by the row that an order has at that place. The order is "
            "made in this class, and nothing else is put into it: inputs and targets do not belong together.",
            "row = self.order[index]\nreturn self.x[row], self.y[row]",
            certain=False,
        )


def _fetched(frame: FrameType) -> list[int] | None:
    """Return the indices that a loader fetches in a frame."""
    found = frame.f_locals.get("possibly_batched_index") if frame.f_code.co_name == "fetch" else None
    return [it for it in found if isinstance(it, int)] if isinstance(found, list) else None
