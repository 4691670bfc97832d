"""Folds that share one model: rows that are held out now, and were trained on in an earlier round."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
from torch.utils.data import DataLoader, Subset

from course_utils.audit.book import Model
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call
from course_utils.audit.lines import Spot, frames, names_in
from course_utils.audit.loops import referred, running
from course_utils.audit.shuffles import own_lines
from course_utils.audit.source import assigned
from course_utils.explain.source import called, names_of

_HELD = re.compile(r"(^|_)(va|val|valid|validation|te|test|holdout|held|dev|oof)(_|$)")
TRAINED = re.compile(r"(^|_)(train|training|tr|fit)(_|$)")
_SEARCHES = 5
_FRAMES = 6
_PARTS, _NUMBERS = 6, 8  # of a model are compared


class _Place(NamedTuple):
    """The loop over splits: the code it stands in, and the names of both parts."""

    code: CodeType
    loop: Spot
    held: str
    trained: str


@dataclass
class _Round:
    """The rows of one round, and the things that held them."""

    held: frozenset[int] = frozenset()
    trained: frozenset[int] = frozenset()
    holders: tuple[Callable[[], Any], ...] = ()
    data: int = 0  # the data set that they are parts of, if they are


@dataclass
class _Said:
    """Where a model is made, and what it had seen of what is held out."""

    spot: Spot
    held: str
    rows: int
    of: int
    rounds: int = 0


@dataclass
class Folds:
    """Which rows a model was trained on in the rounds before, unless it was made anew."""

    check: Check
    _place: _Place | None = None
    _now: _Round = field(default_factory=_Round)
    _past: dict[int, frozenset[int]] = field(default_factory=dict)  # by the model
    _ends: dict[int, torch.Tensor] = field(default_factory=dict)  # numbers of a model at its last evaluation
    _searches: int = 0
    _asked: bool = True  # since the last pass a model was evaluated
    _pending: _Said | None = None  # not evaluated yet
    _said: _Said | None = None

    def called(self, event: Call) -> None:
        if not event.grad:
            self._asked = True
            if self._place is not None:
                self._ends[event.model.key] = _numbers(event.module)
                if self._pending is not None:
                    self._said, self._pending = self._pending, None
        elif self._asked:
            self._asked = False
            self._look(event)

    def _look(self, event: Call) -> None:
        frame = None
        if self._place is None and self._searches < _SEARCHES:
            self._searches += 1
            self._place = next(_places(), None)
        if self._place is not None:
            code = self._place.code
            frame = next((it for it in islice(frames(), _FRAMES) if it.f_code is code), None)
        if frame is None or self._place is None:
            return
        known = names_in(frame)
        holders = known.get(self._place.held), known.get(self._place.trained)
        if any(one is not None and one is before() for one, before in zip(holders, self._now.holders, strict=False)):
            return
        held, trained = (_rows(it) for it in holders)
        if not held or not trained or held & trained or held == self._now.held:
            return
        # Row numbers of two data sets have nothing to do with each other.
        data = id(getattr(holders[0], "dataset", None))
        same = not self._now.holders or data == self._now.data
        self._now = _Round(held, trained, tuple(map(referred, holders)), data)
        self._begin(event.model, event.module, known, same)

    def _begin(self, model: Model, module: torch.nn.Module, known: Mapping[str, Any], same: bool) -> None:
        """Note that a round begins, and what the model was trained on before it."""
        end = self._ends.get(model.key)
        carried = same and end is not None and torch.equal(end, _numbers(module))
        past = self._past.get(model.key, frozenset()) if carried else frozenset()
        self._past[model.key] = past | self._now.trained
        both = self._now.held & past
        if both and self._place is not None:
            loop = self._place.loop
            name = next((name for name, value in known.items() if value is module), "")
            made = assigned(loop, name) if name else None
            spot = made if made is not None and made.line < loop.line else loop
            rounds = 1 + (self._said.rounds if self._said is not None else 0)
            self._pending = _Said(spot, self._place.held, len(both), len(self._now.held), rounds)

    def found(self) -> Iterator[Found]:
        said, self._now = self._said, _Round()
        if said is not None:
            yield self.check.say(
                "held-out-trained",
                said.spot,
                f"the model is made once for all splits: it was trained on {said.rows} of {said.of} rows of "
                f"{said.held} in a round before",
                f"Each round holds out other rows, and goes on with the weights of the last one: those have seen what "
                f"{said.held} is meant to hold out. From the second round on the score says little of new data.",
                "for train_rows, held_rows in splits:\n    model = ...  # made in the loop, with its optimizer",
                times=said.rounds,
                names=(said.held,),
            )


def _numbers(module: torch.nn.Module) -> torch.Tensor:
    """Return a few numbers of a model, that tell whether it was made anew."""
    values = [it.detach().reshape(-1)[:_NUMBERS].double().cpu() for it in islice(module.parameters(), _PARTS)]
    return torch.cat(values) if values else torch.zeros(0)


def _places() -> Iterator[_Place]:
    """Yield the loops that are running and split rows into two parts anew in each round, the innermost first."""
    for frame, spot, loops in running(_FRAMES):
        for loop in reversed(loops):
            found = _parts(loop, frame)
            if found is not None:
                yield _Place(frame.f_code, Spot(spot.file, loop.lineno), *found)


def _parts(loop: ast.For | ast.While, frame: FrameType) -> tuple[str, str] | None:
    """Return the names of the rows that a loop holds out and of those that it trains on."""
    bound = {name for line in own_lines(loop) if isinstance(line, ast.Assign) for to in line.targets
             for name in names_of(to)}  # fmt: skip
    targets = [it.id for it in ast.walk(loop.target) if isinstance(it, ast.Name)] if isinstance(loop, ast.For) else []
    known = names_in(frame)
    rows = [name for name in (*targets, *sorted(bound)) if _rows(known.get(name))]
    held = [name for name in rows if _HELD.search(name.lower()) and not TRAINED.search(name.lower())]
    trained = [name for name in rows if TRAINED.search(name.lower()) and not _HELD.search(name.lower())]
    if not held and not trained and isinstance(loop, ast.For) and ".split(" in ast.unparse(loop.iter):
        trained, held = rows[:1], rows[1:2]  # as scikit-learn's splitters give them
    if not held or not trained or any(it in bound | set(targets) for it in _owners(loop, held[0])):
        return None
    return held[0], trained[0]


def _owners(loop: ast.For | ast.While, rows: str) -> set[str]:
    """Return the names of what some rows are taken from in a loop."""
    found: set[str] = set()
    for node in ast.walk(loop):
        if isinstance(node, ast.Subscript) and rows in names_of(node.slice):
            found |= names_of(node.value)
        elif isinstance(node, ast.Call) and called(node) == "Subset" and len(node.args) == 2:
            found |= names_of(node.args[0]) if rows in names_of(node.args[1]) else set()
    return found


def _rows(value: Any) -> frozenset[int]:
    """Return the row numbers that a value holds: an array or list of whole numbers, or a part of a data set."""
    value = value.dataset if isinstance(value, DataLoader) else value
    value = value.indices if isinstance(value, Subset) else value
    if isinstance(value, range) or (isinstance(value, list) and value and all(type(it) is int for it in value)):
        return frozenset(value)
    if type(value).__name__ == "ndarray" and value.ndim == 1 and value.dtype.kind in "iu":
        return frozenset(value.tolist())
    if isinstance(value, torch.Tensor) and value.dim() == 1 and value.dtype == torch.int64:
        return frozenset(value.tolist())
    return frozenset()
