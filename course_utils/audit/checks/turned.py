"""Inputs that are flipped by chance, with a target that has the same places and is not flipped."""

from __future__ import annotations

import ast
import re
from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import torch
from torch.utils.data import DataLoader, Subset

from course_utils.audit.check import Check, Found
from course_utils.audit.classes import class_source
from course_utils.audit.draws import Drawn, drawn_apart
from course_utils.audit.events import Call
from course_utils.audit.inplace import method
from course_utils.audit.lines import Spot, is_learners, names_in
from course_utils.audit.loops import GOES_ON, running, value_of
from course_utils.audit.mentions import functions_at
from course_utils.audit.source import tree_of
from course_utils.audit.turning import is_left, unmatched
from course_utils.explain.source import called, names_of

_SEARCHES = 4
_FRAMES = 4
_PLACES = re.compile(r"box|keypoint|kpt|landmark|joint|corner|coord|gaze", re.I)


class _Left(NamedTuple):
    """A target that is left as it was: the line that turns its input, and the names of both."""

    spot: Spot
    image: str
    target: str
    drawn: bool = False  # it is turned as well, by a draw of its own


class Turned(Check):
    """What is flipped, rotated or rolled by chance, and what belongs to the same places."""

    codes: ClassVar = ("target-not-flipped",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._searches, self._step = 0, -1
        self._times: Counter[_Left] = Counter()
        self._given: list[torch.Tensor] = []  # to models, in this step
        self._targets: list[tuple[torch.Tensor, _Left]] = []
        self._inputs: set[_Left] = set()  # whose target goes into a model as well

    def called(self, event: Call) -> None:
        if self._searches > _SEARCHES or event.given is None or not event.grad:
            self._given, self._targets = [], []
            return
        if self.clock.steps != self._step:
            self._step, self._searches = self.clock.steps, self._searches + 1
            self._given, self._targets = [], []
        self._given.append(event.given)
        size = event.given.dim() - 2
        places = event.given.shape[2:]
        dense = event.out is not None and size > 0 and event.out.shape[-size:] == places and min(places) > 1
        if self._searches <= _SEARCHES and event.given.is_floating_point():
            for left, target in self._search():
                same = target.dim() > size and target.shape[0] == len(event.given) and target.shape[-size:] == places
                if (dense and same) or (size > 0 and _PLACES.search(left.target)):
                    self._times[left] += 1
                    self._targets.append((target, left))
        self._inputs |= {left for target, left in self._targets if any(it is target for it in self._given)}

    def _search(self) -> Iterator[tuple[_Left, torch.Tensor]]:
        """Yield what the loops around the running line leave as it was, though the input is turned."""
        for frame, spot, loops in running(_FRAMES):
            known = names_in(frame) if loops else {}
            for loop in reversed(loops):
                if isinstance(loop, ast.For):
                    yield from _of_loop(loop, spot.file, known)
                    yield from _of_set(loop, spot.file, known)

    def found(self) -> Iterator[Found]:
        for left, times in self._times.items():
            told = left not in self._inputs and times >= min(2, self.clock.steps)
            if told and left.drawn:
                yield self._by_two_draws(left, times)
            elif told:
                yield self.say(
                    "target-not-flipped",
                    left.spot,
                    f"{left.image} is turned by chance, and {left.target}, which tells of the same places, is not",
                    f"Where {left.image} is flipped or rotated, {left.target} still stands as it was: the model is "
                    "taught that what is on the left of such an input is on the right of its answer.",
                    f"{left.target} = torch.flip({left.target}, ...)  # by the same draw and along the same axis",
                    certain=False,
                    times=times,
                    names=(left.image, left.target),
                )

    def _by_two_draws(self, left: _Left, times: int) -> Found:
        return self.say(
            "target-not-flipped",
            left.spot,
            f"{left.image} and {left.target} are turned by two draws: often one is turned and the other is not",
            "Each call, and each random number, decides anew. Where one is flipped and the other stands as it was, the "
            "model is taught that what is on the left of such an input is on the right of its answer.",
            f"if random.random() < 0.5:  # one draw for both\n    {left.image}, {left.target} = flip({left.image}), "
            f"flip({left.target})",
            certain=False,
            times=times,
            names=(left.image, left.target),
        )


def _of_loop(loop: ast.For, file: str, known: Mapping[str, Any]) -> Iterator[tuple[_Left, torch.Tensor]]:
    for one, other, spot in _apart(loop, file, known):
        for name in sorted(_names(one, other)):
            if isinstance(known.get(name), torch.Tensor):
                yield _Left(spot, one.thing, other.thing, drawn=True), known[name]
    turn = unmatched(loop, file, known)
    if turn is None:
        return
    bound = names_of(loop.target)
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and any(isinstance(it, ast.Subscript) for it in ast.walk(node.value)):
            bound |= {it for to in node.targets for it in names_of(to) if node.lineno < turn.at}
    later = {it.id for it in ast.walk(loop) if isinstance(it, ast.Name) and it.lineno >= turn.at}
    for name in sorted(bound & later - turn.names):
        value = known.get(name)
        if isinstance(value, torch.Tensor) and is_left(ast.Name(name), loop, turn):
            yield _Left(turn.spot, ", ".join(sorted(turn.names)), name), value


def _of_set(loop: ast.For, place: str, known: Mapping[str, Any]) -> Iterator[tuple[_Left, torch.Tensor]]:
    """Yield what the data set that a loop goes through leaves as it was."""
    source, target = loop.iter, loop.target
    while isinstance(source, ast.Call) and called(source) in GOES_ON and source.args:
        if called(source) == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            target = target.elts[1]
        source = source.args[0]
    kind, file, data = _data_set(source, place, known)
    reading = method(kind, "__getitem__") if kind is not None else None
    own = {f"self.{name}": value for name, value in getattr(data, "__dict__", {}).items()}
    if reading is not None:
        shared = getattr(getattr(type(data), "__getitem__", None), "__globals__", {})
        yield from _handed_out(reading, file, ChainMap(own, shared), target, known)
    collate = getattr(value_of(source, dict(known)), "collate_fn", None)
    if collate is None and isinstance(source, ast.Call):  # made in the head of the loop
        given = next((it.value for it in source.keywords if it.arg == "collate_fn"), None)
        collate = value_of(given, dict(known)) if given is not None else None
    code = getattr(collate, "__code__", None)
    if code is None or not is_learners(code.co_filename):
        return
    for function in functions_at(code.co_filename, code.co_firstlineno):
        yield from _handed_out(function, code.co_filename, {}, target, known)


def _handed_out(
    reading: ast.FunctionDef | ast.Lambda, file: str, own: Mapping[str, Any], target: ast.expr, known: Mapping[str, Any]
) -> Iterator[tuple[_Left, torch.Tensor]]:
    """Yield what a function that makes samples or batches turns nothing of, though it turns another part."""
    returned = [it.value for it in ast.walk(reading) if isinstance(it, ast.Return) and it.value is not None]
    if isinstance(reading, ast.Lambda):
        returned = [reading.body]
    for one, other, spot in _apart(reading, file, own):
        for key, part in (it for value in returned for it in _parts(value)):
            if any(it is other.node for it in ast.walk(part)) or names_of(part) & _names(one, other):
                value = _element(target, key, known)
                if isinstance(value, torch.Tensor):
                    yield _Left(spot, one.thing, other.thing, drawn=True), value
    turn = unmatched(reading, file, own)
    for node in ast.walk(reading) if turn is not None else ():
        if isinstance(node, ast.Return) and node.value is not None and turn is not None and node.lineno > turn.at:
            for key, part in _parts(node.value):
                value = _element(target, key, known)
                if isinstance(value, torch.Tensor) and is_left(part, reading, turn):
                    name = next(iter(sorted(names_of(part) - {"self"})), "") if isinstance(part, ast.Name) else ""
                    yield _Left(turn.spot, ", ".join(sorted(turn.names)), name or ast.unparse(part)), value


def _names(one: Drawn, other: Drawn) -> set[str]:
    """Return the names of the second of two things that are turned, where both may be bound at once."""
    return {other.thing, *other.bound} - {one.thing}


def _apart(scope: ast.AST, file: str, known: Mapping[str, Any]) -> Iterator[tuple[Drawn, Drawn, Spot]]:
    """Yield what is turned by two draws, each as the input and as the target: which is which, the calls tell."""
    for pair in drawn_apart(scope, file, known):
        yield pair.first, pair.second, pair.spot
        yield pair.second, pair.first, pair.spot


def _data_set(source: ast.expr, place: str, known: Mapping[str, Any]) -> tuple[ast.ClassDef | None, str, Any]:
    """Return the class of what a loop reads, with its file, and the data set itself where a name leads to it."""
    if isinstance(source, ast.Call) and called(source) in ("DataLoader", "Subset") and source.args:
        return _data_set(source.args[0], place, known)
    if isinstance(source, ast.Call):
        tree = tree_of(place)
        kinds = [it for it in (ast.walk(tree) if tree else ()) if isinstance(it, ast.ClassDef)]
        return next((it for it in kinds if it.name == called(source)), None), place, None
    data = value_of(source, dict(known))
    while isinstance(data, DataLoader | Subset):
        data = data.dataset
    kind, file = class_source(type(data)) if hasattr(data, "__dict__") else (None, "")
    return kind, file, data


def _parts(value: ast.expr) -> list[tuple[Any, ast.expr]]:
    """Return the parts of what a data set hands out, by place or by key."""
    if isinstance(value, ast.Tuple):
        return list(enumerate(value.elts))
    if isinstance(value, ast.Dict):
        return [(it.value, to) for it, to in zip(value.keys, value.values, strict=True) if isinstance(it, ast.Constant)]
    return []


def _element(target: ast.expr, key: Any, known: Mapping[str, Any]) -> Any:
    """Return a part of a batch, from the name or names that a loop gives to it."""
    if isinstance(target, ast.Tuple):
        place = target.elts[key] if isinstance(key, int) and key < len(target.elts) else None
        return known.get(place.id) if isinstance(place, ast.Name) else None
    batch = known.get(target.id) if isinstance(target, ast.Name) else None
    if isinstance(batch, dict):
        return batch.get(key)
    return batch[key] if isinstance(batch, list | tuple) and isinstance(key, int) and key < len(batch) else None
