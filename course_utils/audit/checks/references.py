"""Containers that hold one tensor many times, which is written in place: all entries are what was written last."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op
from course_utils.audit.expressions import assigned_value
from course_utils.audit.holders import variables
from course_utils.audit.lines import Spot
from course_utils.audit.source import function_around, statement, tree_of
from course_utils.explain.source import called, names_of

_ENTRIES = 4
_MANY = 8
_SMALL = 10_000
_PUTS = frozenset({"append", "appendleft", "push", "add", "put", "store", "insert", "remember", "extend"})


@dataclass
class _Stacked:
    """A line that puts entries together which are all one tensor."""

    entries: int
    memory: int
    version: int
    name: str
    kept: Spot | None
    numbers: torch.Tensor | None  # what stood there, where another library writes: no version tells of that
    grew: bool = False
    times: int = 1


class References(Check):
    """Entries that are put together and share their memory, though it was written again and again."""

    codes: ClassVar = ("kept-by-reference",)
    functions: ClassVar = frozenset({"stack", "cat", "vstack", "hstack", "concat", "concatenate"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._lines: dict[Spot, _Stacked] = {}

    def function(self, event: Op) -> None:
        entries = event.args[0] if event.args else None
        if not isinstance(entries, Sequence) or len(entries) < _ENTRIES or not _is_one(entries):
            return
        spot, one = event.spot, entries[0]
        foreign = _is_foreign(entries)
        if spot is None or (one._version < _ENTRIES - 1 and not foreign) or (one.is_leaf and one.requires_grad):
            return
        known = self._lines.get(spot)
        if known is not None:
            known.times += 1
            written = one._version > known.version or (
                known.numbers is not None and known.numbers.shape == one.shape and not known.numbers.equal(one)
            )
            known.grew |= one.data_ptr() == known.memory and written
        elif not _is_meant(spot):
            name, kept = _kept(one, spot)
            numbers = one.clone() if foreign else None
            self._lines[spot] = _Stacked(len(entries), one.data_ptr(), one._version, name, kept, numbers)

    def found(self) -> Iterator[Found]:
        told: set[Spot] = set()
        for spot, line in self._lines.items():
            often = line.entries >= _MANY and line.version >= line.entries - 1
            place = line.kept or spot
            if place in told or not (line.grew or often):
                continue
            told.add(place)
            name = line.name or "one tensor"
            yield self.say(
                "kept-by-reference",
                place,
                f"{name} is kept by reference and written in place: {line.entries} of {line.entries} entries are equal",
                f"A container keeps the tensor itself, and not what it held at that time. Line {spot.line} puts the "
                "entries together: they share one memory, and all of them are what was written last.",
                f"{line.name.rpartition('.')[2] or 'state'}.clone()  # where it is kept, or handed out",
                times=line.times,
                names=(name,),
            )


def _is_one(entries: Sequence[Any]) -> bool:
    """Say whether all entries are one tensor, or views of the same part of one memory."""
    first = entries[0]
    if not isinstance(first, torch.Tensor) or type(first) is torch.nn.Parameter or not first.numel():
        return False
    if entries[1] is not first and not _shares(entries[1], first):
        return False  # most lists end here
    return all(it is first or _shares(it, first) for it in entries)


def _is_foreign(entries: Sequence[Any]) -> bool:
    """Say whether entries over one memory have storages of their own: it belongs to NumPy, say, and each wraps it."""
    one, other = entries[0], entries[1]
    return one is not other and one.untyped_storage()._cdata != other.untyped_storage()._cdata and one.numel() <= _SMALL


def _shares(one: Any, other: torch.Tensor) -> bool:
    return (
        isinstance(one, torch.Tensor)
        and one.shape == other.shape
        and one.stride() == other.stride()
        and one.data_ptr() == other.data_ptr()
    )


def _is_meant(spot: Spot) -> bool:
    """Say whether the source at a line repeats a tensor on purpose: `[x] * n`, or `[x for _ in range(n)]`."""
    found = statement(spot)
    for node in ast.walk(found) if found is not None else ():
        if isinstance(node, ast.Call) and called(node) in References.functions and node.args:
            given: ast.expr | None = node.args[0]
            if isinstance(given, ast.Name):
                given = assigned_value(spot, given.id)
            if given is not None and any(map(_repeats, ast.walk(given))):
                return True
    return False


def _repeats(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return any(isinstance(it, ast.List | ast.Tuple) for it in (node.left, node.right))
    if isinstance(node, ast.List | ast.Tuple) and len(node.elts) >= _ENTRIES:
        return len({ast.unparse(it) for it in node.elts}) == 1
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        bound = names_of(*(it.target for it in node.generators))
        return not bound & names_of(node.elt)
    return False


def _kept(tensor: torch.Tensor, spot: Spot) -> tuple[str, Spot | None]:
    """Return the learner's name of a tensor, and the line that hands it out, or puts it into a container."""
    names = [(place, name) for place, name, value in variables() if value is tensor or _shares(value, tensor)]
    for place, name in sorted(names, key=lambda it: "." not in it[1]):
        attribute = name.rpartition(".")[2]
        texts = {name, f"self.{attribute}"} if "." in name else {name}
        scope = tree_of(place.file) if "." in name else function_around(place)
        nodes = [node for node in (ast.walk(scope) if scope else ()) if isinstance(node, ast.Return | ast.Call)]
        for node in sorted(nodes, key=lambda it: (not isinstance(it, ast.Return), it.lineno)):
            given = [node.value] if isinstance(node, ast.Return) else node.args if called(node) in _PUTS else []
            if any(ast.unparse(part) in texts for it in given if it is not None for part in _direct(it)):
                return name, Spot(place.file, node.lineno)
    return (names[0][1] if names else ""), None


def _direct(node: ast.expr) -> Iterator[ast.expr]:
    """Yield what an expression hands on as it is: itself, or the parts of a display."""
    if isinstance(node, ast.Tuple | ast.List):
        for part in node.elts:
            yield from _direct(part)
    elif isinstance(node, ast.Dict):
        for value in node.values:
            yield from _direct(value)
    else:
        yield node
