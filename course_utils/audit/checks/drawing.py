"""Rows that are never drawn: by samplers with weights of classes or a mask, and by loaders that begin anew."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch.utils.data import Subset, SubsetRandomSampler, WeightedRandomSampler

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op
from course_utils.audit.first_batches import FirstBatches
from course_utils.audit.lines import Spot
from course_utils.audit.loaders import loading
from course_utils.audit.source import calls, nearest, text_at

_FEW = 0.1  # a list of rows as long as the data set that names so few different ones is no list of rows
_ROUNDS = 2
_LARGE = 4  # rows for each weight, where rows are drawn by hand


@dataclass
class _Drawn:
    """A sampler, or a line that draws rows by hand, and what it can reach."""

    spot: Spot | None
    name: str
    given: int
    rows: int
    few: int = 0  # different rows that a list of rows names
    times: int = 0


class Drawing(Check):
    """How many rows of a data set a sampler can draw at all."""

    codes: ClassVar = ("never-drawn",)
    functions: ClassVar = frozenset({"multinomial", "randperm", "__getitem__", "index_select", "stack"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._drawn: dict[Any, _Drawn] = {}
        self._first = FirstBatches()
        self._rows: dict[int, tuple[torch.Tensor, int, Spot]] = {}  # the last rows drawn by hand

    def function(self, event: Op) -> None:
        if event.name == "stack":
            self._first.collated(event.spot)
        elif event.name in ("multinomial", "randperm"):
            loader, sampler = loading()
            spot = event.spot
            if loader is not None and spot is not None:
                self._look(loader, sampler, spot)
            elif event.name == "multinomial" and spot is not None:
                self._remember(event, spot)
        elif self._rows and event.args and isinstance(event.args[0], torch.Tensor):
            self._take(event)

    def _look(self, loader: Any, sampler: Any, spot: Spot) -> None:
        rows = _length(loader._dataset)
        kind = type(sampler).__name__
        if isinstance(sampler, WeightedRandomSampler) and 0 < len(sampler.weights) < rows:
            key = kind, id(sampler), spot
            self._drawn.setdefault(key, _Drawn(_made(kind, spot), kind, len(sampler.weights), rows)).times += 1
        elif isinstance(sampler, SubsetRandomSampler):
            self._few(sampler.indices, rows, kind, spot)
        elif isinstance(loader._dataset, Subset):
            self._few(loader._dataset.indices, _length(loader._dataset.dataset), "Subset", spot)

    def _few(self, indices: Any, rows: int, kind: str, spot: Spot) -> None:
        given = _length(indices)
        if given != rows or (kind, id(indices), spot) in self._drawn:
            return
        few = len({int(index) for index in indices})
        if 1 < few <= _FEW * rows:
            self._drawn[kind, id(indices), spot] = _Drawn(_made(kind, spot), kind, given, rows, few, 1)

    def _remember(self, event: Op, spot: Spot) -> None:
        weights = event.argument(0, "input")
        if isinstance(weights, torch.Tensor) and weights.dim() == 1 and not weights.requires_grad:
            self._rows = {id(event.out): (event.out, weights.shape[0], spot)}

    def _take(self, event: Op) -> None:
        rows = event.args[0]
        index = event.args[1] if event.name == "__getitem__" else event.argument(2, "index")
        known = self._rows.get(id(index))
        if known is None or rows.requires_grad or rows.dim() == 0:
            return
        _, given, spot = known
        if rows.shape[0] >= _LARGE * given:
            self._drawn.setdefault(spot, _Drawn(spot, "multinomial", given, rows.shape[0])).times += 1

    def found(self) -> Iterator[Found]:
        for begun in self._first.again(min(self.clock.steps, self.recorder.full_steps)):
            yield self.say(
                "never-drawn",
                begun.spot,
                f"each step begins the loader anew and takes its first batch: {begun.rows - begun.batch} of "
                f"{begun.rows} rows are never drawn",
                "iter(loader) starts at the first row, as the loader does not shuffle. A new iterator in each step "
                "gives the same batch each time.",
                "for batch in loader: ...  # one iterator for all batches of an epoch",
                times=begun.times,
            )
        for it in self._drawn.values():
            if it.name == "multinomial" and it.times < _ROUNDS:
                continue
            few = it.few or it.given
            if it.few:
                yield self.say(
                    "never-drawn",
                    it.spot,
                    f"{it.name} is given {it.given} entries that name {few} different rows: the other "
                    f"{it.rows - few} are never drawn",
                    "It takes the numbers of rows. A mask, or a list of labels, has an entry for each row, and its "
                    "values are taken for numbers of rows: True is row 1, False row 0.",
                    "rows = torch.nonzero(mask).flatten().tolist()  # the numbers of the rows that are meant",
                    times=it.times,
                )
            else:
                yield self.say(
                    "never-drawn",
                    it.spot,
                    f"{it.name} has {it.given} weights for {it.rows} rows: only the first {it.given} are ever drawn",
                    "The weight at place i is that of row i, and not of class i: each row needs one. The other "
                    f"{it.rows - it.given} rows are never seen.",
                    "weights = class_weights[labels]  # one for each sample",
                    level="likely" if it.name == "multinomial" else None,
                    certain=it.name != "multinomial",
                    times=it.times,
                )


def _length(thing: Any) -> int:
    return len(thing) if isinstance(thing, Sized) else 0


def _made(kind: str, spot: Spot) -> Spot:
    """Return the line that makes a sampler, near the one that draws."""
    found = [it for it in calls(spot.file, rf"\b{kind}$") if text_at(it)]
    return nearest(found, spot) or spot
