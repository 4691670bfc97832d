"""Rows that are held out by name, and are trained on all the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from torch.utils.data import DataLoader, Subset

from course_utils.audit.check import Check, Found
from course_utils.audit.checks.folds import TRAINED, Folds
from course_utils.audit.events import Call
from course_utils.audit.holders import variables
from course_utils.audit.lines import Spot
from course_utils.audit.source import assigned, calls, nearest

_SEARCHES = 3
_HELD = re.compile(r"(^|_)(val|valid|validation|test|holdout|dev)(_|$)")


class Holdouts(Check):
    """Which rows of one data set the subsets have that names tell apart, when the training begins."""

    codes: ClassVar = ("held-out-trained",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._searches, self._step = 0, -1
        self._folds = Folds(self)
        self._said: tuple[Spot, str, str, int, int] | None = None

    def called(self, event: Call) -> None:
        self._folds.called(event)
        if self._searches < _SEARCHES and self.clock.steps != self._step and self._said is None:
            self._searches, self._step = self._searches + 1, self.clock.steps
            self._search()

    def _search(self) -> None:
        found = [
            (spot, name.lower(), part)
            for spot, name, value in list(variables())
            for name, part in _subsets(name, value)
        ]
        held = [it for it in found if _HELD.search(it[1]) and not TRAINED.search(it[1])]
        trained = [it for it in found if TRAINED.search(it[1]) and not _HELD.search(it[1])]
        for spot, name, part in held:
            for _, other, rows in trained:
                both = set(map(int, part.indices)) & set(map(int, rows.indices))
                if rows.dataset is part.dataset and both:
                    made = nearest(calls(spot.file, r"Subset$"), spot) or assigned(spot, name) or spot
                    self._said = made, name, other, len(both), len(part.indices)
                    return

    def found(self) -> Iterator[Found]:
        yield from self._folds.found()
        if self._said is None or not self.clock.steps:
            return
        spot, held, trained, both, rows = self._said
        yield self.say(
            "held-out-trained",
            spot,
            f"{both} of {rows} rows of {held} are in {trained}, too",
            f"Both are parts of one data set, by their row numbers. The model is trained on rows that {held} is meant "
            "to hold out: what is measured there says little of new data.",
            "order = torch.randperm(len(data)).tolist()\nSubset(data, order[:n]), Subset(data, order[n:])  # one cut",
            times=both,
            names=(held, trained),
        )


def _subsets(name: str, value: Any) -> Iterator[tuple[str, Subset[Any]]]:
    """Yield the subsets that a variable stands for: itself, that of a loader, and those in a dict by their keys."""
    pairs = [(str(key), it) for key, it in value.items()] if type(value) is dict and len(value) < 9 else [(name, value)]
    for own, it in pairs:
        part = it.dataset if isinstance(it, DataLoader) else it
        if isinstance(part, Subset):
            yield own.rpartition(".")[2], part
