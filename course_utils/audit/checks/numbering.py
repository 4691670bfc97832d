"""What was kept of each batch by its number, and is read by that number in a later pass, which shuffles anew."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Pass
from course_utils.audit.lines import Spot, names_in
from course_utils.audit.loops import running, value_of
from course_utils.audit.numbered import Kept, filled_by_batches, kept_by_number
from course_utils.audit.shuffles import is_shuffled
from course_utils.audit.source import function_around
from course_utils.explain.source import names_of
from course_utils.graph.alive import tensors_in

_FRAMES, _FIRST = 3, 3  # batches of a pass that are told apart from those of the next
_TIMES = 2


@dataclass
class _Read:
    """A line that reads by number: what its first batches began with, and how often another came by the number."""

    name: str
    seen: dict[int, tuple[float, ...]] = field(default_factory=dict)
    others: int = 0


class Numbering(Check):
    """Loops over batches that read what another pass kept for the same number."""

    codes: ClassVar = ("kept-by-number",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._read: dict[Spot, _Read] = {}
        self._filled: dict[Spot, bool] = {}

    def pass_begins(self, event: Pass) -> None:
        if not event.accumulate:
            return
        for frame, spot, loops in running(_FRAMES):
            found = [(loop, it) for loop in loops if isinstance(loop, ast.For) for it in kept_by_number(loop)]
            open_ = [(loop, it) for loop, it in found if self._is_open(Spot(spot.file, it.line))]
            known = names_in(frame) if open_ else {}
            for loop, kept in open_:
                self._look(loop, kept, spot, known)

    def _is_open(self, spot: Spot) -> bool:
        read = self._read.get(spot)
        return self._filled.get(spot, True) and (read is None or read.others < _TIMES)

    def _look(self, loop: ast.For, kept: Kept, spot: Spot, known: dict[str, Any]) -> None:
        """Compare the batch that has a number now with the one that had it in the pass before."""
        store = value_of(kept.store, known)
        number = _number(kept, store, known)
        if number is None or number >= _FIRST or not isinstance(store, list | tuple | dict | torch.Tensor):
            return
        batches = [it for it in _batch(loop, kept, known) if it.dim() and len(it) > 1]
        batch = next((it for it in batches if _is_ahead(store, number, len(it), kept.how == "slice")), None)
        if batch is None or not is_shuffled(loop, spot, known):
            return
        where = Spot(spot.file, kept.line)
        if where not in self._filled:
            scope = function_around(where)
            self._filled[where] = scope is not None and filled_by_batches(spot.file, scope, ast.unparse(kept.store))
        if self._filled[where]:
            read = self._read.setdefault(where, _Read(ast.unparse(kept.store)))
            mark = tuple(batch.detach().flatten(1).double().sum(1).tolist() if batch.dim() > 1 else batch.tolist())
            read.others += read.seen.get(number, mark) != mark
            read.seen[number] = mark

    def found(self) -> Iterator[Found]:
        for spot, read in self._read.items():
            if read.others:
                yield self.say(
                    "kept-by-number",
                    spot,
                    f"{read.name} is kept by the number of the batch, and each pass has other rows under that number",
                    "What goes through the batches shuffles them anew for each pass. An entry that was made of the "
                    "rows of one pass is put beside the rows of another: they have nothing to do with each other.",
                    "for index, x, y in loader:  # a dataset that returns the row's number, too\n"
                    f"    {read.name}[index]  # one entry for each row, as in torch.cat of a pass without shuffling",
                    certain=False,
                    times=read.others,
                    names=(read.name,),
                )


def _number(kept: Kept, store: Any, known: dict[str, Any]) -> int | None:
    """Return the number of the batch: as the loop counts it, or by the place of the entry that it has."""
    value = known.get(kept.number)
    if kept.how != "zip":
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    places = range(min(len(store), _FIRST)) if isinstance(store, list | tuple) else ()
    return next((at for at in places if store[at] is value), None)


def _is_ahead(store: Any, number: int, rows: int, sliced: bool) -> bool:
    """Say whether a store has an entry for a batch of so many rows, and one for the batch that is to come."""
    if sliced:
        return isinstance(store, torch.Tensor) and store.dim() > 0 and len(store) > (number + 1) * rows
    if isinstance(store, torch.Tensor):
        return store.dim() > 1 and len(store) > number + 1 and store.shape[1] == rows
    there = number in store and number + 1 in store if isinstance(store, dict) else number + 1 < len(store)
    return there and _rows(store[number]) == rows


def _rows(entry: Any) -> int:
    """Return how many rows an entry has; 0 for one that has none."""
    tensor = next(tensors_in((entry,)), None)
    if tensor is not None:
        return len(tensor) if tensor.dim() else 0
    shape = getattr(entry, "shape", ())
    return int(shape[0]) if shape else 0


def _batch(loop: ast.For, kept: Kept, known: dict[str, Any]) -> Iterator[torch.Tensor]:
    """Yield the tensors that a round of a loop got as its batch."""
    for name in sorted(names_of(loop.target) - {kept.number}):
        value = known.get(name)
        if isinstance(value, torch.Tensor) and not value.is_complex():
            yield value
        elif isinstance(value, list | tuple | dict):
            yield from tensors_in((value,))
