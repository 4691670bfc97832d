"""What a function takes out of a batch of records, thing by thing: by an index, a field or a key."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from course_utils.audit.source import tree_of
from course_utils.explain.source import applied_to, called, names_of

_LEAST = 3  # things that are taken out of one batch
_KEEPS = frozenset({"append", "push", "add", "store", "remember", "put", "appendleft"})
_CASTS = frozenset({"float", "int", "bool", "tensor", "as_tensor", "float32", "array"})


class Column(NamedTuple):
    """A name with what it holds of each record, and the batch that the records stand in."""

    name: str
    batch: str
    key: int | str


def columns(nodes: list[ast.AST]) -> Iterator[Column]:
    """Yield the names that hold one thing of each record of a batch, where several are taken out of it."""
    found = [
        Column(target.id, *taken)
        for node in nodes
        if isinstance(node, ast.Assign)
        for target, value in _pairs(node.targets[0], node.value)
        if isinstance(target, ast.Name) and (taken := _taken(value)) is not None
    ]
    for column in found:
        if len({it.key for it in found if it.batch == column.batch}) >= _LEAST:
            yield column


def unpacked_flags(file: str, nodes: list[ast.AST], is_flag: Callable[[str], bool]) -> set[str]:
    """Return the names that stand for the flags where records are taken apart: `s, a, r, s2, d = zip(*batch)`.

    Where each of the records has a flag, by its name, tells what the file keeps: records of as many things.
    """
    places = {count: at for count, at in _kept_flags(file, is_flag)}
    found: set[str] = set()
    for node in nodes:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Tuple) and len(target.elts) in places and "zip(*" in ast.unparse(node.value):  # type: ignore[attr-defined]
            part = target.elts[places[len(target.elts)]]
            found |= {part.id} if isinstance(part, ast.Name) else set()
    return found


def stored_flags(file: str, is_flag: Callable[[str], bool]) -> set[int]:
    """Return the places at which the records that a file keeps hold a flag, from the front and from the end."""
    return {place for count, at in _kept_flags(file, is_flag) for place in (at, at - count)}


def _kept_flags(file: str, is_flag: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    """Yield of each record that a file keeps how many things it has, and which of them is a flag."""
    tree = tree_of(file)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and called(node) in _KEEPS:
            rows = [it for it in node.args if isinstance(it, ast.Tuple)]
            if rows and len(rows[0].elts) > _LEAST:
                yield from ((len(rows[0].elts), at) for at, it in enumerate(rows[0].elts) if is_flag(_name(it)))


def _name(node: ast.expr) -> str:
    """Return the name of something kept, also of what is cast."""
    while isinstance(node, ast.Call) and called(node) in _CASTS and len(node.args) == 1:
        node = node.args[0]
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        yield from zip(target.elts, value.elts, strict=True)
    else:
        yield target, value


def _taken(value: ast.expr) -> tuple[str, int | str] | None:
    """Return the batch and the place, field or key of what is stacked, cast or picked of it; None for anything else."""
    for node in ast.walk(value):
        if isinstance(node, ast.ListComp | ast.GeneratorExp) and len(node.generators) == 1:
            return _of_each(node.elt, node.generators[0])
        if isinstance(node, ast.Call) and called(node) == "map" and len(node.args) == 2:
            function, batch = node.args
            if isinstance(function, ast.Lambda) and function.args.args:
                key = _picked(function.body, function.args.args[0].arg)
                return (ast.unparse(batch), key) if key is not None else None
    return _direct(value)


def _of_each(made: ast.expr, loop: ast.comprehension) -> tuple[str, int | str] | None:
    """Return what a comprehension takes of each record: `m[4]`, `m.done`, or one of the names that it unpacks."""
    batch = ast.unparse(loop.iter)
    if isinstance(loop.target, ast.Tuple):
        places = [at for at, it in enumerate(loop.target.elts) if names_of(it) & names_of(made)]
        return (batch, places[0]) if len(places) == 1 else None
    key = _picked(made, ast.unparse(loop.target))
    return (batch, key) if key is not None else None


def _picked(node: ast.expr, record: str) -> int | str | None:
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and ast.unparse(part.value) == record:
            return part.attr
        if isinstance(part, ast.Subscript) and ast.unparse(part.value) == record:
            return _place(part.slice)
    return None


def _direct(value: ast.expr) -> tuple[str, int | str] | None:
    """Return what is taken of a batch as it stands: `columns[4]`, `batch["done"]`, `rows[:, 4]`, `self.ends[at]`."""
    if isinstance(value, ast.Call):  # cast: by a function, or by a method
        inner = applied_to(value, ("torch", "np", "numpy", "torch.Tensor"))
        return _direct(inner) if inner is not None else None
    if not isinstance(value, ast.Subscript):
        return None
    key = _place(value.slice)
    if key is not None:
        return ast.unparse(value.value), key
    name = value.value.attr if isinstance(value.value, ast.Attribute) else ast.unparse(value.value)
    return (f"[{value.slice.id}]", name) if isinstance(value.slice, ast.Name) else None


def _place(index: ast.expr) -> int | str | None:
    if isinstance(index, ast.Tuple) and index.elts:  # of a table: its last axis
        index = index.elts[-1]
    try:
        key = ast.literal_eval(index)
    except ValueError:
        return None
    return key if isinstance(key, int | str) and not isinstance(key, bool) else None
