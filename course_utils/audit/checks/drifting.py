"""Stored rows that a training writes to: what is read again is no longer what was stored."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.classes import class_source
from course_utils.audit.erasing import chance_write
from course_utils.audit.events import Call
from course_utils.audit.holders import variables
from course_utils.audit.inplace import Write, method, methods_called, writes, writes_to_parameter
from course_utils.audit.lines import Spot
from course_utils.audit.loops import goes_through
from course_utils.audit.mentions import functions_named, names_read, parts
from course_utils.audit.source import function_around, loop_around, taken_apart, tree_of
from course_utils.explain.source import called, names_of

_SEARCHES = 3
_LOOKS = 300
_ROWS, _WIDE = 256, 16  # so much of a store is compared
_ENTRIES = 20
_YIELDS = (ast.Yield, ast.YieldFrom)
_SHARE = 0.1  # of its rows must have changed twice


@dataclass
class _Store:
    """Rows of the learner's, and the line that may write to them."""

    name: str
    spot: Spot
    write: Write
    rows: Any
    last: torch.Tensor
    times: torch.Tensor  # how often each row had changed at a look
    whole: bool = False  # it is written to itself, and not by a row or a slice of it


class Drifting(Check):
    """Whether the rows of data sets and of tensors that loops go through change again and again."""

    codes: ClassVar = ("data-drifts",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._stores: dict[int, _Store] = {}
        self._looks = self._searches = 0
        self._step = -1

    def called(self, event: Call) -> None:
        if self.clock.steps == self._step or not event.grad:
            return
        self._step = self.clock.steps
        if self._searches < _SEARCHES:
            self._searches += 1
            self._search()
        elif self._stores and self._looks < _LOOKS:
            self._looks += 1
            for store in self._stores.values():
                now = _values(store.rows)
                if now is not None and now.shape == store.last.shape:
                    store.times += (now != store.last).flatten(1).any(dim=1)
                    store.last = now

    def _search(self) -> None:
        found = list(variables())
        known = {name: value for _, name, value in reversed(found)}
        for spot, name, value in found:
            for own, thing in _whole(name, value):
                self._by_chance(spot, own, thing, known)
            for thing in _things(value):
                if isinstance(thing, torch.Tensor) or type(thing).__name__ == "ndarray":
                    self._of_loop(spot, name, thing)
                else:
                    self._of_set(thing)
                    self._of_batches(spot, name, thing)

    def _of_loop(self, spot: Spot, name: str, value: Any) -> None:
        scope = function_around(spot)
        loop = loop_around(spot)
        if scope is None or loop is None or name in _bound(loop):
            return
        write = next((it for it in writes(loop) if name in it.roots), None)
        if write is None and isinstance(loop, ast.For):
            given = names_of(loop.target) if _hands_out(spot.file, loop, name) else set()
            write = _written_in(loop, _slices(loop, name) | given, tree_of(spot.file))
        if write is not None:
            self._add(name, value, Spot(spot.file, write.line), write)

    def _by_chance(self, spot: Spot, name: str, value: Any, known: dict[str, Any]) -> None:
        """Look at a whole store that a loop, or what the loop calls, erases or stirs by chance."""
        loop = loop_around(spot) if id(value) not in self._stores else None
        write = chance_write(loop, name, spot.file, known) if loop is not None else None
        if write is not None:
            self._add(name, value, Spot(write.file or spot.file, write.line), write, whole=True)

    def _of_set(self, thing: Any) -> None:
        kind, file = class_source(type(thing))
        reading = method(kind, "__getitem__") if kind is not None else None
        if reading is None:
            return
        found = list(writes(reading))
        tree = tree_of(file)
        asks = {ast.unparse(it.func).rpartition(".")[2] for it in ast.walk(reading) if isinstance(it, ast.Call)}
        for it in ast.walk(reading):  # for change in self.changes: row = change(row)
            if isinstance(it, ast.For) and names_of(it.target) & asks and isinstance(it.iter, ast.Attribute):
                asks.add(it.iter.attr)
        others = [it for it in (ast.walk(tree) if tree else ()) if isinstance(it, ast.FunctionDef)]
        for name, value in vars(thing).items():
            write = next((it for it in found if f"self.{name}" in it.roots), None)
            if write is None and f"self.{name}" in ast.unparse(reading):
                run = [it for name in asks & vars(thing).keys() for it in _parts(vars(thing)[name])]
                given = [writes_to_parameter(it) for it in others if _is_asked(it, thing, asks)]
                given += [_placed(writes_to_parameter(it), of) for part in run for it, of in methods_called(part)]
                write = next((it for it in given if it is not None), None)
            if write is not None:
                self._add(f"{type(thing).__name__}.{name}", value, Spot(write.file or file, write.line), write)

    def _of_batches(self, spot: Spot, name: str, thing: Any) -> None:
        """Look at what a loader of the learner's hands out, where the loop over it writes into its batches."""
        kind, _ = class_source(type(thing))
        reading = method(kind, "__iter__") if kind is not None else None
        loop = loop_around(spot)
        if reading is None or not isinstance(loop, ast.For) or name not in names_of(loop.iter):
            return
        write = _written_in(loop, names_of(loop.target), tree_of(spot.file))
        if write is None:
            return
        for attribute, value in vars(thing).items():
            if f"self.{attribute}" in ast.unparse(reading):
                self._add(f"{type(thing).__name__}.{attribute}", value, Spot(spot.file, write.line), write)

    def _add(self, name: str, rows: Any, spot: Spot, write: Write, *, whole: bool = False) -> None:
        values = _values(rows)
        if values is not None and len(values) > 1:
            self._stores.setdefault(
                id(rows), _Store(name, spot, write, rows, values, torch.zeros(len(values), dtype=torch.int64), whole)
            )

    def found(self) -> Iterator[Found]:
        for store in self._stores.values():
            again = int((store.times >= 2).sum())
            if again < _SHARE * len(store.times) or again < 2:
                continue
            own = store.write.name
            yield self.say(
                "data-drifts",
                store.spot,
                f"the rows of {store.name} change each time that they are read: "
                + (f"{own} is the store itself" if store.whole else f"{own} is a view of them"),
                ("What a function is given is no copy. " if store.whole else "")
                + ("" if store.whole else "An index or a slice of a tensor or array shares its memory. ")
                + f"What this line writes into {own} stays in the stored data, and the next epoch adds to it: of "
                f"{len(store.times)} rows looked at, {again} changed more than once.",
                f"{own} = {own}.clone()  # before it is changed (NumPy: .copy()), or write {own} = {own} + ...",
                times=int(store.times.max()),
                names=(store.name, own),
            )
        self._stores.clear()


def _placed(write: Write | None, file: str) -> Write | None:
    return write._replace(file=file) if write is not None else None


def _written_in(loop: ast.For, batch: set[str], tree: ast.AST | None) -> Write | None:
    """Return the line that writes into a batch: in a loop itself, or in a function that the loop gives it to."""
    own = next((it for it in writes(loop) if it.name in batch), None)
    functions = {it.name: it for it in (ast.walk(tree) if tree else ()) if isinstance(it, ast.FunctionDef)}
    given = [
        writes_to_parameter(functions[name])
        for it in ast.walk(loop)
        if isinstance(it, ast.Call) and (name := called(it)) in functions
        if any(isinstance(argument, ast.Name) and argument.id in batch for argument in it.args)
    ]
    return own or next((it for it in given if it is not None), None)


def _slices(loop: ast.For, name: str) -> set[str]:
    """Return the names that a loop gives to slices of something: views of it, as in `xb = x[s : s + n]`."""
    found = set()
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign):
            for target, value in zip(taken_apart(node.targets[0]), taken_apart(node.value), strict=False):
                if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
                    found |= {ast.unparse(target)} if ast.unparse(value.value) == name else set()
    return found


def _hands_out(file: str, loop: ast.For, name: str) -> bool:
    """Say whether a loop goes through what a generator of the file yields, and that can hold parts of something."""
    call = goes_through(loop.iter)
    makers = [it for it in functions_named(file, called(call)) if any(isinstance(part, _YIELDS) for part in parts(it))]
    return any(name in names_of(call) | names_read(it) for it in makers)


def _is_asked(function: ast.FunctionDef, thing: Any, asks: set[str]) -> bool:
    """Say whether reading a row runs a function: by its name, or by that of an attribute that it stands in."""
    if function.name in asks:
        return True
    for name in asks & vars(thing).keys():
        if any(getattr(it, "__name__", "") == function.name for it in _parts(vars(thing)[name])):
            return True
    return False


def _parts(given: Any) -> Sequence[Any]:
    """Return what is called for a row: the thing itself, or those that it calls one after the other."""
    return getattr(given, "transforms", None) or (given if isinstance(given, list | tuple) else [given])


def _things(value: Any) -> Iterator[Any]:
    """Yield data sets, tensors and arrays that a variable stands for or leads to."""
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for it in (value, *list(values)[:8]):
        it = getattr(it, "dataset", it) if isinstance(it, torch.utils.data.DataLoader) else it
        for _ in range(3):
            if isinstance(it, torch.utils.data.Subset):
                it = it.dataset
        plain = isinstance(it, torch.Tensor)
        rows = plain and not it.requires_grad and it.dim() and it.is_floating_point()
        read = hasattr(type(it), "__getitem__") or hasattr(type(it), "__iter__")
        stored = not plain and read and hasattr(it, "__dict__")
        if stored or (it is value and (rows or type(it).__name__ == "ndarray")):
            yield it


def _whole(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tensors and arrays that a variable stands for or holds, each with its text."""
    if isinstance(value, torch.Tensor):
        if value.dim() and not value.requires_grad:
            yield name, value
    elif type(value).__name__ == "ndarray":
        yield name, value
    elif type(value) is dict and len(value) < _ENTRIES:
        for key, it in value.items():
            if isinstance(key, str) and isinstance(it, torch.Tensor):
                yield from _whole(f"{name}[{key!r}]", it)
    elif type(value).__name__ == "SimpleNamespace" or hasattr(value, "_fields"):
        held = vars(value) if hasattr(value, "__dict__") else value._asdict()
        for key, it in held.items():
            if isinstance(it, torch.Tensor):
                yield from _whole(f"{name}.{key}", it)


def _values(rows: Any) -> torch.Tensor | None:
    """Return a copy of some numbers of some rows: of a tensor, an array, or a list of either."""
    if isinstance(rows, list | tuple):
        parts = [_values([it]) if isinstance(it, list) else _one(it) for it in rows[:_ROWS]]
        flat = [it.reshape(-1)[:_WIDE] for it in parts if it is not None]
        return torch.stack(flat).clone() if flat and len({len(it) for it in flat}) == 1 else None
    whole = _one(rows)
    if whole is None or not whole.dim() or whole.requires_grad:
        return None
    wide = whole[:_ROWS].reshape(min(len(whole), _ROWS), -1)
    return wide[:, :: max(1, wide.shape[1] // _WIDE)][:, :_WIDE].clone()


def _one(value: Any) -> torch.Tensor | None:
    if isinstance(value, torch.Tensor):
        return value.detach() if value.layout == torch.strided else None
    if type(value).__name__ == "ndarray" and value.dtype.kind in "fiu" and value.flags.writeable:
        return torch.from_numpy(value) if value.dtype.str not in ("<u2", "<u4", "<u8") else None
    return None


def _bound(loop: ast.For | ast.While) -> set[str]:
    """Return the names that a loop binds anew."""
    found = {ast.unparse(it) for node in ast.walk(loop) if isinstance(node, ast.Assign) for it in node.targets}
    return found | ({ast.unparse(loop.target)} if isinstance(loop, ast.For) else set())
