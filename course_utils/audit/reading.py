"""Checks that read at the end what ran of a script. Only calls of models are noted, and no operation is."""

from __future__ import annotations

import ast
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.desk import Desk
from course_utils.audit.events import Call, through_views
from course_utils.audit.finding import Level
from course_utils.audit.lines import Spot, frames, names_in
from course_utils.audit.mentions import functions_of, parts, ran
from course_utils.audit.source import tree_of
from course_utils.graph.trace import node_name

Scopes = list[tuple[str, ast.AST]]

_MOST, _LOOKS, _FRAMES = 64, 8, 2


_SEEN: weakref.WeakKeyDictionary[Desk, Seen] = weakref.WeakKeyDictionary()


class Told(NamedTuple):
    """A mistake that a script's text shows."""

    code: str
    spot: Spot
    headline: str
    why: str
    fix: str
    names: tuple[str, ...] = ()
    level: Level | None = None


class Shape(NamedTuple):
    """How many axes something has, how many rows, and how many numbers along the last axis."""

    axes: int
    rows: int
    last: int


def shape_of(size: Sequence[int]) -> Shape:
    """Return what is kept of a shape."""
    return Shape(len(size), size[0] if size else 0, size[-1] if size else 0)


@dataclass
class Asked:
    """What the calls of one line gave to models: which models, at least how many axes, and how many rows."""

    models: set[int] = field(default_factory=set)
    axes: int = 99
    rows: int = 1 << 30  # at least
    most: int = 0  # rows at most
    gave: set[Shape] = field(default_factory=set)
    looks: int = 0


@dataclass
class Seen:
    """Lines that called models, and what models gave in training: the axes, and the last function, by model."""

    spots: set[Spot] = field(default_factory=set)
    asked: dict[Spot, Asked] = field(default_factory=dict)
    gave: dict[int, set[tuple[int, str]]] = field(default_factory=dict)
    looks: dict[int, int] = field(default_factory=dict)
    shapes: dict[tuple[str, str], dict[str, set[Shape]]] = field(default_factory=dict)  # of variables, by function
    scopes: Scopes = field(default_factory=list)  # once the watch has ended

    def note(self, event: Call) -> None:
        if len(self.spots) < _MOST:
            self.spots.update(event.spots)
        where = event.spots[0] if event.spots else None
        if where is not None and (where in self.asked or len(self.asked) < _MOST):
            asked = self.asked.setdefault(where, Asked())
            asked.models.add(event.model.key)
            shape = event.given.shape if event.given is not None else torch.Size()
            asked.axes = min(asked.axes, len(shape))
            rows = shape[0] if shape else 0
            asked.rows, asked.most = min(asked.rows, rows), max(asked.most, rows)
            if event.gave is not None and len(asked.gave) < _LOOKS:
                asked.gave.add(shape_of(event.gave))
            if asked.looks < _FRAMES:
                asked.looks += 1
                self._note_variables(where.file)
        if event.out is not None and self.looks.get(event.model.key, 0) < _LOOKS:
            self.looks[event.model.key] = self.looks.get(event.model.key, 0) + 1
            made = through_views(event.out.grad_fn)
            self.gave.setdefault(event.model.key, set()).add((event.out.dim(), node_name(made) if made else ""))

    def _note_variables(self, file: str) -> None:
        """Note the shapes of what the line that runs can name."""
        frame = next(frames(), None)
        if frame is None:
            return
        for name, value in names_in(frame).items():
            if isinstance(value, torch.Tensor | np.ndarray):
                known = self.shapes.setdefault((file, name), {}).setdefault(frame.f_code.co_name, set())
                if len(known) < _LOOKS:
                    known.add(shape_of(value.shape))

    def shapes_of(self, file: str, name: str, function: str) -> set[Shape]:
        """Return the shapes of a function's variable where models were called in it.

        A file's own statements are the function "<module>".
        """
        return self.shapes.get((file, name), {}).get(function, set())

    def at(self, file: str, node: ast.expr) -> Asked | None:
        """Return what the calls of models within an expression's lines were."""
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        return next((it for line in lines if (it := self.asked.get(Spot(file, line))) is not None), None)

    def outputs(self, asked: Asked) -> set[tuple[int, str]]:
        """Return the axes and the last function of what the models of a line gave in training."""
        return {it for key in asked.models for it in self.gave.get(key, ())}


Reader = Callable[[Scopes, Seen], Iterator[Told]]


class Reading(Check):
    """A check whose readers are given all functions that ran, or are named in what ran."""

    readers: ClassVar[tuple[Reader, ...]] = ()

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._notes = self.recorder not in _SEEN  # the first of these checks notes for all
        self.seen = _SEEN.setdefault(self.recorder, Seen())

    def called(self, event: Call) -> None:
        if self._notes:
            self.seen.note(event)

    def found(self) -> Iterator[Found]:
        scopes = scopes_of(self.recorder) if self.clock.steps else []
        told: set[tuple[str, Spot]] = set()
        for reader in self.readers:
            for it in reader(scopes, self.seen):
                if (it.code, it.spot) not in told:
                    told.add((it.code, it.spot))
                    yield self.say(
                        it.code, it.spot, it.headline, it.why, it.fix, level=it.level, certain=False, names=it.names
                    )


def scopes_of(desk: Desk) -> Scopes:
    """Return the functions that ran, as the checks of a watch noted; found once, at its end."""
    seen = _SEEN.get(desk)
    if seen is not None and not seen.scopes:
        seen.scopes = reached(seen.spots)
    return seen.scopes if seen is not None else []


def files_of(desk: Desk) -> set[str]:
    """Return the files whose lines have called models so far: those that `scopes_of` reads at the end."""
    seen = _SEEN.get(desk)
    return {spot.file for spot in seen.spots} if seen is not None else set()


def reached(spots: Iterable[Spot]) -> Scopes:
    """Return the functions that ran, and those whose names stand in what ran: a loader calls them, or a class does."""
    found = dict.fromkeys(ran(sorted(spots)))
    queue = list(found)
    for file, scope in queue:
        named = {it.id for it in parts(scope) if isinstance(it, ast.Name)}
        for function in _named(file, frozenset(named)):
            if (file, function) not in found:
                found[file, function] = None
                queue.append((file, function))
    return queue


def _named(file: str, names: frozenset[str]) -> Iterator[ast.AST]:
    """Yield the functions of a file with one of these names, and the methods of the classes with one."""
    for name in sorted(names & functions_of(file).keys()):
        yield from functions_of(file)[name]
    tree = tree_of(file)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.ClassDef) and node.name in names:
            yield from (it for it in node.body if isinstance(it, ast.FunctionDef))
