"""Windows of a series and what is to be told from them, as the source cuts both out: s[i : i + w] and s[i + w - 1]."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parts

_Sum = dict[str, int]  # how often each term is in a sum; "" stands for 1


class _Cut(NamedTuple):
    """A part of a series, from one place up to another; of a single entry there is no end."""

    node: ast.Subscript
    first: _Sum
    end: _Sum | None


def inside(scopes: Iterable[tuple[str, ast.AST]]) -> Iterator[tuple[Spot, str, str]]:
    """Yield the lines that cut a target out of the window before it, with the texts of the target and the window."""
    for file, scope in scopes:
        cuts: dict[str, list[_Cut]] = {}
        known = _bound(scope)
        for node in parts(scope):
            read = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
            if isinstance(node, ast.Subscript) and read and (cut := _cut(node, known)) is not None:
                cuts.setdefault(ast.unparse(node.value), []).append(cut)
        for found in cuts.values():
            windows = [it for it in found if it.end is not None and _apart(it.end, it.first) != 1]
            for cut in found:
                window = next((it for it in windows if it is not cut and _is_in(cut, it)), None)
                if window is not None:
                    yield Spot(file, cut.node.lineno), ast.unparse(cut.node), ast.unparse(window.node)


def _is_in(cut: _Cut, window: _Cut) -> bool:
    """Say whether a part lies at the end of a window: a fixed number of places before it ends."""
    assert window.end is not None
    back = _apart(cut.first, window.end)
    if back is None or back >= 0 or _apart(cut.first, window.first) == 0:
        return False
    ends = 0 if cut.end is None else _apart(cut.end, window.end)
    return ends is not None and ends <= 0


def _bound(scope: ast.AST) -> dict[str, _Sum]:
    """Return what names stand for that are bound once, to a sum of several terms."""
    lines = [it for it in parts(scope) if isinstance(it, ast.Assign) and isinstance(it.targets[0], ast.Name)]
    times = Counter(ast.unparse(it.targets[0]) for it in lines)
    found: dict[str, _Sum] = {}
    for line in lines:
        name = ast.unparse(line.targets[0])
        value = _sum(line.value, found) if times[name] == 1 and isinstance(line.value, ast.BinOp) else None
        if value is not None:
            found[name] = value
    return found


def _cut(node: ast.Subscript, known: dict[str, _Sum]) -> _Cut | None:
    place = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    if isinstance(place, ast.Slice):
        first, end = _sum(place.lower, known), _sum(place.upper, known) if place.upper is not None else None
        moves = first is not None and end is not None and place.step is None and _names(first) & _names(end)
        return _Cut(node, first, end) if moves and first is not None else None
    one = _sum(place, known)
    return _Cut(node, one, None) if one is not None and _names(one) else None


def _names(terms: _Sum) -> set[str]:
    return {name for name, times in terms.items() if name and times}


def _sum(node: ast.expr | None, known: dict[str, _Sum]) -> _Sum | None:
    """Return an expression as a sum of names and a number; None for anything else."""
    if node is None:
        return {}
    if isinstance(node, ast.Constant):
        return {"": node.value} if type(node.value) is int else None
    if isinstance(node, ast.Name | ast.Attribute):
        return known.get(ast.unparse(node), {ast.unparse(node): 1})
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add | ast.Sub):
        return None
    one, other = _sum(node.left, known), _sum(node.right, known)
    if one is None or other is None:
        return None
    sign = 1 if isinstance(node.op, ast.Add) else -1
    total = Counter(one)
    for name, times in other.items():
        total[name] += sign * times
    return dict(total)


def _apart(one: _Sum, other: _Sum) -> int | None:
    """Return by how many places one sum lies behind another; None where that is no fixed number."""
    names = _names(one) | _names(other)
    if any(one.get(name, 0) != other.get(name, 0) for name in names):
        return None
    return one.get("", 0) - other.get("", 0)
