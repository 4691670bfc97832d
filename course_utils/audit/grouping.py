"""What the call that makes an optimizer names by itself: one module's parameters, or one tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from course_utils.audit.book import Slot, Trainer
from course_utils.audit.expressions import assigned_value
from course_utils.audit.lines import Spot
from course_utils.audit.source import statement
from course_utils.explain.source import called

_WRAPPERS = ("list", "tuple", "chain", "iter")


class Named(NamedTuple):
    """A part of what an optimizer was given, as the source names it, and what that stands for."""

    text: str
    slots: Sequence[Slot]


def named_parts(trainer: Trainer) -> Iterator[Named]:
    """Yield the modules and tensors that an optimizer's call names by themselves, in groups or in one list.

    A group that is chosen from all parameters, as those without decay are, names nothing.
    """
    given = _given(trainer)
    made = trainer.made or Spot("", 0)
    parts = _entries(given, made) if given is not None else []
    groups = [it for it in (_group_of(_resolved(part, made)) for part in parts) if it is not None]
    if groups and len(groups) == len(parts):
        first = 0
        for value, count in zip(groups, trainer.groups, strict=False):
            slots, first = trainer.slots[first : first + count], first + count
            text = _text(value, made)
            if text:
                yield Named(text, slots)
    elif len(trainer.groups) == 1:
        yield from _listed(parts, trainer.slots)


def _given(trainer: Trainer) -> ast.expr | None:
    """Return what an optimizer is made of, as its line says."""
    made, optimizer = trainer.made, trainer.ref()
    found = statement(made) if made is not None else None
    for node in ast.walk(found) if found is not None else ():
        if isinstance(node, ast.Call) and called(node) == type(optimizer).__name__:
            words = [word.value for word in node.keywords if word.arg == "params"]
            return next(iter([*node.args[:1], *words]), None)
    return None


def _resolved(value: ast.expr, spot: Spot) -> ast.expr:
    """Return the expression that a name was assigned, if it is a name for which there is one."""
    return (assigned_value(spot, value.id) if isinstance(value, ast.Name) else None) or value


def _entries(value: ast.expr, spot: Spot) -> list[ast.expr]:
    """Return the entries of a list as it stands in the source; what comes from something else is starred."""
    value = _resolved(value, spot)
    if isinstance(value, ast.List | ast.Tuple):
        return value.elts
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        return [*_entries(value.left, spot), *_entries(value.right, spot)]
    if isinstance(value, ast.Call) and called(value) in _WRAPPERS:
        return [it if isinstance(it, ast.Starred) else ast.Starred(it) for it in value.args]
    return [ast.Starred(value)]


def _group_of(entry: ast.expr) -> ast.expr | None:
    """Return what a group holds: `x` of `{"params": x}` or `dict(params=x)`."""
    if isinstance(entry, ast.Dict):
        pairs = zip(entry.keys, entry.values, strict=True)
        return next((value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "params"), None)
    if isinstance(entry, ast.Call) and called(entry) == "dict":
        return next((word.value for word in entry.keywords if word.arg == "params"), None)
    return None


def _text(value: ast.expr, spot: Spot) -> str:
    """Return what a group is called, where it is one module's parameters or tensors by name, and nothing chosen."""
    meant = _resolved(value, spot)
    entries = meant.elts if isinstance(meant, ast.List | ast.Tuple) else []
    if entries and all(isinstance(it, ast.Name | ast.Attribute) for it in entries):
        return ast.unparse(entries[0])
    return _owner(meant) or (ast.unparse(value) if isinstance(meant, ast.Attribute) else "")


def _owner(value: ast.expr) -> str | None:
    """Return the text before `.parameters()`, also where a list is made of it."""
    while isinstance(value, ast.Starred) or (isinstance(value, ast.Call) and called(value) in _WRAPPERS):
        inside = [value.value] if isinstance(value, ast.Starred) else value.args
        if len(inside) != 1:
            return None
        value = inside[0]
    plain = isinstance(value, ast.Call) and called(value) == "parameters" and isinstance(value.func, ast.Attribute)
    return ast.unparse(value.func.value) if plain else None  # type: ignore[attr-defined]


def _listed(parts: list[ast.expr], slots: list[Slot]) -> Iterator[Named]:
    """Yield the parts of one list: modules by the names of their parameters, tensors by their places."""
    stars = [at for at, part in enumerate(parts) if isinstance(part, ast.Starred)]
    for at, part in enumerate(parts):
        if isinstance(part, ast.Starred):
            owner = _owner(part)
            own = [slot for slot in slots if owner is not None and _is_under(slot, owner)]
            if owner is not None:
                yield Named(owner, own)
        elif isinstance(part, ast.Name | ast.Attribute):
            place = at if not stars or at < stars[0] else at - len(parts) if at > stars[-1] else None
            if place is not None and -len(slots) <= place < len(slots):
                yield Named(ast.unparse(part), [slots[place]])


def _is_under(slot: Slot, owner: str) -> bool:
    return f".{owner.removeprefix('self.')}." in f".{slot.name}"
