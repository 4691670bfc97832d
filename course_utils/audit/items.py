"""What a data set's `__getitem__` reads, as its class says: with the index that it is given, or with another."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sized
from typing import Any, NamedTuple

from course_utils.audit.classes import class_source
from course_utils.audit.lines import Spot, is_learners
from course_utils.audit.mentions import own
from course_utils.audit.source import taken_apart
from course_utils.explain.source import names_of

# What gives one sample again and again, or pairs rows of different places, is called so where it is meant.
_ONE = re.compile(r"overfit|sanity|single|one_|^one|debug|dummy|fake|bench|synthetic|repeat|same|constant|mock", re.I)
_PAIRS = re.compile(
    r"pair|siam|triplet|negativ|permut|control|null|corrupt|nois|wrong|mix_|mixup|random_|contrast|mismatch", re.I
)

_DRAWN = re.compile(r"randperm|permutation|shuffle|argsort|sample\(")


class Item(NamedTuple):
    """The method of a data set that gives a sample, and its file."""

    file: str
    kind: ast.ClassDef
    method: ast.FunctionDef


def item_of(data: Any) -> Item | None:
    """Return the `__getitem__` of a data set whose class is the learner's own."""
    kind, file = class_source(type(data))
    if kind is None or not is_learners(file):
        return None
    found = [it for it in kind.body if isinstance(it, ast.FunctionDef) and it.name == "__getitem__"]
    return Item(file, kind, found[0]) if found and len(found[0].args.args) > 1 else None


def other_index(item: Item) -> Spot | None:
    """Return the line that reads rows with something that the index has no part in; None where that may be meant."""
    if _ONE.search(item.kind.name):
        return None
    from_index = _from_index(item.method)
    for line in own(item.method):
        for node in ast.walk(line):
            if isinstance(node, ast.Subscript) and not names_of(node) & from_index and _is_row(node):
                return Spot(item.file, node.lineno)
    return None


def _is_row(node: ast.Subscript) -> bool:
    """Say whether one entry of an attribute, or of a name, is read: by a number or by a name."""
    entry = isinstance(node.slice, ast.Name | ast.Attribute) or (
        isinstance(node.slice, ast.Constant) and type(node.slice.value) is int
    )
    return entry and isinstance(node.value, ast.Attribute | ast.Name)


def _from_index(method: ast.FunctionDef) -> set[str]:
    """Return the names that are computed from the index, itself included."""
    owner, index = (it.arg for it in method.args.args[:2])
    found = {index}
    for line in own(method):
        if isinstance(line, ast.Assign) and names_of(line.value) & found:
            found |= names_of(*line.targets)
    return found - {owner}


def two_indices(item: Item, data: Any) -> Iterator[tuple[Spot, str, str]]:
    """Yield the lines that return one row by the index and another by what a list has for it, with both texts."""
    if _PAIRS.search(re.sub(r"permutation\(|randperm\(", "", ast.unparse(item.kind))):
        return
    owner, index = (it.arg for it in item.method.args.args[:2])
    bound = {
        ast.unparse(to): value for line in own(item.method) if isinstance(line, ast.Assign) for to, value in _each(line)
    }
    for line in own(item.method):
        given = line.value if isinstance(line, ast.Return) else None
        if not isinstance(given, ast.Tuple) or len(given.elts) != 2:
            continue
        rows = [row for it in given.elts if (row := _row(it, bound, owner)) is not None]
        if len(rows) != 2 or rows[0].value.attr == rows[1].value.attr:  # type: ignore[attr-defined]
            continue
        plain = [it for it in rows if ast.unparse(it.slice) == index]
        mapped = [(it, order) for it in rows if (order := _order(it.slice, bound, owner, index)) is not None]
        if len(plain) == len(mapped) == 1 and _are_alike(data, plain[0], *mapped[0]):
            yield Spot(item.file, line.lineno), ast.unparse(mapped[0][0]), ast.unparse(plain[0])


def _each(line: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    for to in line.targets:
        yield to, line.value
        yield from zip(taken_apart(to), taken_apart(line.value), strict=False)


def _row(node: ast.expr, bound: dict[str, ast.expr], owner: str) -> ast.Subscript | None:
    """Return the row that is read of an attribute, behind a name and casts: `self.x[i]` of `self.x[i].float()`."""
    for _ in range(4):
        if isinstance(node, ast.Name) and node.id in bound:
            node = bound[node.id]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
            node = node.func.value
    plain = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute)
    return node if plain and ast.unparse(node.value.value) == owner else None  # type: ignore[attr-defined,return-value]


def _order(node: ast.expr, bound: dict[str, ast.expr], owner: str, index: str) -> str | None:
    """Return the attribute that an index is looked up in: `order` for `self.order[i]`, also behind a name."""
    node = bound.get(node.id, node) if isinstance(node, ast.Name) else node
    while isinstance(node, ast.Call) and len(node.args) == 1 and ast.unparse(node.func) == "int":
        node = node.args[0]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item":
        node = node.func.value
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute):
        return None
    own_list = ast.unparse(node.value.value) == owner and ast.unparse(node.slice) == index
    return node.value.attr if own_list else None


def _are_alike(data: Any, plain: ast.Subscript, mapped: ast.Subscript, order: str) -> bool:
    """Say whether both are as long, and the order is made in the class, which puts nothing else into it."""
    one, other, numbers = (getattr(data, it, None) for it in (_attribute(plain), _attribute(mapped), order))
    if not isinstance(one, Sized) or not isinstance(other, Sized) or not isinstance(numbers, Sized):
        return False
    if not len(one) == len(other) == len(numbers):
        return False
    if all(int(numbers[at]) == at for at in range(len(one))):  # type: ignore[index]
        return False
    kinds = [node for it in type(data).__mro__ if (node := class_source(it)[0]) is not None]
    lines = [it for kind in kinds for it in ast.walk(kind) if isinstance(it, ast.Assign)]
    made = [line.value for line in lines if _binds(line, order)]
    before = any(_binds(line, _attribute(plain)) and order in ast.unparse(line.value) for line in lines)
    return len(made) == 1 and _DRAWN.search(ast.unparse(made[0])) is not None and not before


def _binds(line: ast.Assign, attribute: str) -> bool:
    return any(isinstance(it, ast.Attribute) and it.attr == attribute for to in line.targets for it in ast.walk(to))


def _attribute(row: ast.Subscript) -> str:
    return row.value.attr  # type: ignore[attr-defined,no-any-return]
