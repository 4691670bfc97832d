"""Loaders that begin anew at each step: without a shuffle, only their first batch is ever drawn."""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch.utils.data import SequentialSampler

from course_utils.audit.lines import Spot
from course_utils.audit.loaders import fetching
from course_utils.audit.source import function_around, text_at

# What reads one batch again and again on purpose is called so.
_ON_PURPOSE = re.compile(r"overfit|sanity|one_batch|single_batch|fixed|debug|smoke", re.I)
_TIMES = 5


@dataclass
class Begun:
    """A data set whose loader was begun: how often, where, and whether any batch but the first was drawn."""

    rows: int
    batch: int
    spot: Spot
    times: int = 0
    further: bool = False
    last: weakref.ref[Any] | None = None


class FirstBatches:
    """Notes how far the loaders go that take their rows in order."""

    def __init__(self) -> None:
        self._begun: dict[int, Begun] = {}  # by the id of a data set, which its loader keeps

    def collated(self, spot: Spot | None) -> None:
        """Take note of a batch that is put together here."""
        at_work = fetching()
        batches = getattr(at_work, "_index_sampler", None)
        rows, batch = getattr(batches, "sampler", None), getattr(batches, "batch_size", 0)
        if spot is None or not isinstance(rows, SequentialSampler) or not 0 < batch < len(rows):
            return
        begun = self._begun.setdefault(id(at_work._dataset), Begun(len(rows), batch, spot))
        begun.further = begun.further or at_work._num_yielded > 0
        if begun.last is None or begun.last() is not at_work:
            begun.times, begun.last = begun.times + 1, weakref.ref(at_work)

    def again(self, steps: int) -> Iterator[Begun]:
        """Yield those of which nothing but the first batch was drawn, as often as there were steps."""
        for begun in self._begun.values():
            name = getattr(function_around(begun.spot), "name", "")
            if begun.further or _ON_PURPOSE.search(f"{text_at(begun.spot)} {name}"):
                continue
            if begun.times >= max(_TIMES, steps):
                yield begun
