"""Orders that NumPy or Python draw, and what the learner's source applies them to."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parts
from course_utils.audit.source import tree_of
from course_utils.explain.source import called

_LABELS = re.compile(
    r"^(ys?|y_?[a-z]{0,6}|(tr|te|va|train|test|val|valid|dev)_?ys?|lab\w*|\w*_?labels?|"
    r"targets?|tgts?|cls|class(es)?|tags?|answers?|truths?|gold)$",
    re.I,
)
_ALIKE = re.compile(r"\b(seed|set_state|setstate|RandomState|default_rng|Random|random_state)\b")
_SHUFFLES = ("permutation", "shuffle")
_DOMAINS = re.compile(r"source|src|domain|unpaired", re.I)


class _Drawn(NamedTuple):
    """Where an order is drawn: two on one line differ in their columns."""

    line: int
    column: int


_Taken = dict[str, set[tuple[_Drawn, int]]]  # by what is put in order: which draw, and the line


@lru_cache(maxsize=256)
def orders_apart(file: str, scope: ast.AST) -> tuple[tuple[Spot, Spot, str, str], ...]:
    """Return the lines of a function that put rows and their labels into two different orders, with their names.

    Only orders that PyTorch does not draw: `rng.permutation`, `np.random.shuffle`, `random.shuffle`, and
    `sklearn.utils.shuffle` on one thing. Numbers that are shuffled, as of `np.arange`, are an order, and no rows.
    Nothing is returned where the random state is set for each of them.
    """
    nodes: list[Any] = [it for it in parts(scope) if isinstance(it, ast.stmt | ast.expr)]
    nodes.sort(key=lambda it: (it.lineno, it.col_offset))
    orders: dict[str, _Drawn] = {}
    numbers: set[str] = set()
    taken: _Taken = {}
    indexed: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Assign):
            if _is_numbers(node.value):
                numbers.update(map(ast.unparse, node.targets))
            drawn = next(iter(_draws(node.value)), None) or next(iter(_named(node.value, orders)), None)
            for target in node.targets if drawn is not None else ():
                orders[ast.unparse(target)] = drawn  # type: ignore[assignment]
        elif isinstance(node, ast.For):
            _bind(node, orders)
        elif isinstance(node, ast.Call) and called(node) == "shuffle" and _given(node) in numbers:
            orders[_given(node)] = _place(node)
    for node in nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            rows = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
            for drawn in [*_draws(rows), *_named(rows, orders)]:
                taken.setdefault(_name(node.value), set()).add((drawn, node.lineno))
                indexed.add(_name(node.value))
        elif isinstance(node, ast.Call) and called(node) in _SHUFFLES:
            given = _given(node)
            if given and given not in orders and given not in numbers:
                taken.setdefault(given, set()).add((_place(node), node.lineno))
    taken.pop("", None)
    lines = [node.lineno for node in nodes if isinstance(node, ast.Call) and _ALIKE.search(ast.unparse(node))]
    return tuple(_pairs(file, taken, indexed, lines, set(_labels_by_place(file, scope, nodes))))


@lru_cache(maxsize=256)
def orders_of_one(file: str, scope: ast.AST) -> tuple[tuple[Spot, Spot, str, str], ...]:
    """Return the lines of a function that put rows in another order, and not their labels, with both names.

    The second line takes both by the same numbers. Labels that are put in some order, or bound anew, are none of these.
    """
    nodes = [it for it in parts(scope) if isinstance(it, ast.stmt | ast.expr)]
    orders = {
        ast.unparse(to) for it in nodes if isinstance(it, ast.Assign) and _is_order(it.value) for to in it.targets
    }
    moved = {name: node for node in nodes if (name := _moved(node) or _taken_by(node, orders))}
    bound = [ast.unparse(to) for node in nodes if isinstance(node, ast.Assign) for to in node.targets]
    shuffled = {_given(node) for node in nodes if isinstance(node, ast.Call) and called(node) in _SHUFFLES}
    found = []
    for rows, node in moved.items():
        for labels, line in _beside(rows, nodes):
            still = labels not in moved and labels not in shuffled and bound.count(labels) <= 1
            if still and line > node.lineno and _is_labels(labels) and not _is_labels(rows):
                found.append((Spot(file, node.lineno), Spot(file, line), rows, labels))
    return tuple(dict.fromkeys(found))


def _moved(node: ast.stmt | ast.expr) -> str:
    """Return the name of the rows that a statement shuffles where they are."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and called(node.value) == "shuffle":
        return _given(node.value)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and called(node.value) == "permutation":
        given = _given(node.value)
        return given if given in map(ast.unparse, node.targets) else ""
    return ""


def _is_order(value: ast.expr) -> bool:
    """Say whether an expression draws an order of numbers: `torch.randperm(n)`, `rng.permutation(len(x))`."""
    given = value.args[0] if isinstance(value, ast.Call) and value.args else None
    counts = isinstance(given, ast.Constant | ast.Call | ast.Attribute | ast.Subscript) or called(value) == "randperm"
    return called(value) in ("randperm", "permutation") and counts


def _taken_by(node: ast.stmt | ast.expr, orders: set[str]) -> str:
    """Return the name that a statement binds to all of some rows, taken in an order that was drawn."""
    value = node.value if isinstance(node, ast.Assign) else None
    if isinstance(value, ast.Subscript) and isinstance(node, ast.Assign) and ast.unparse(value.slice) in orders:
        return ast.unparse(node.targets[0])
    return ""


def _beside(rows: str, nodes: list[ast.stmt | ast.expr]) -> Iterator[tuple[str, int]]:
    """Yield what is taken by the same numbers as some rows, or row by row with them, and the line."""
    taken: dict[str, set[str]] = {}
    lines: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and isinstance(node.ctx, ast.Load):
            taken.setdefault(ast.unparse(node.slice), set()).add(_name(node.value))
            lines[ast.unparse(node.slice)] = node.lineno
        elif isinstance(node, ast.Call) and called(node) in ("zip", "TensorDataset") and len(node.args) == 2:
            taken.setdefault(ast.unparse(node), set()).update(map(_name, node.args))
            lines[ast.unparse(node)] = node.lineno
    for numbers, names in taken.items():
        if rows in names and len(names - {""}) == 2:  # of more it is not plain which belong together
            yield from ((name, lines[numbers]) for name in names - {rows, ""})


def _labels_by_place(file: str, scope: ast.AST, nodes: list[Any]) -> Iterator[str]:
    """Yield what a data set of two is given second, and what a function returns for a caller's name of labels."""
    tree = tree_of(file) if isinstance(scope, ast.FunctionDef) else None
    wanted = [
        node.targets[0].elts
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and called(node.value) == getattr(scope, "name", "")
    ]
    for node in nodes:
        if isinstance(node, ast.Call) and called(node) == "TensorDataset" and len(node.args) == 2:
            yield _name(node.args[1])
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            for names in wanted:
                pairs = zip(names, node.value.elts, strict=False)
                yield from (_name(given) for to, given in pairs if _is_labels(ast.unparse(to)))


def _place(node: ast.expr) -> _Drawn:
    return _Drawn(node.lineno, node.col_offset)


def _is_numbers(node: ast.expr) -> bool:
    """Say whether an expression is the numbers of some rows: `np.arange(n)`, `list(range(n))`."""
    if isinstance(node, ast.Call) and called(node) in ("list", "array", "sorted") and node.args:
        return _is_numbers(node.args[0])
    return isinstance(node, ast.Call) and called(node) in ("arange", "range")


def _given(call: ast.Call) -> str:
    """Return the name of the one thing that a call is given; nothing where it is no name, or there are more."""
    given = call.args[0] if len(call.args) == 1 else None
    return ast.unparse(given) if isinstance(given, ast.Name | ast.Attribute) else ""


def _pairs(
    file: str, taken: _Taken, indexed: set[str], alike: list[int], known: set[str]
) -> Iterator[tuple[Spot, Spot, str, str]]:
    draws = {name: {draw for draw, _ in places} for name, places in taken.items()}
    for name, mine in taken.items():
        for labels, theirs in taken.items():
            if _is_labels(name) or not (_is_labels(labels) or labels in known - {name}) or _DOMAINS.search(name):
                continue
            ours, others = draws[name], draws[labels]
            if len(ours) != 1 or len(others) != 1 or ours == others:
                continue
            # Labels in one order with other rows have what belongs to them, and rows with something else may have their
            # own labels: these are two pairs. Rows that an order is applied to alone may be one input of several.
            paired = any(others == it and not _is_labels(other) for other, it in draws.items())
            if paired and (name not in indexed or any(ours == it for other, it in draws.items() if other != name)):
                continue
            first, last = sorted((*ours, *others))
            if not any(first.line < line <= last.line or line == first.line == last.line for line in alike):
                yield Spot(file, last.line), Spot(file, max(line for _, line in (*mine, *theirs))), name, labels


def _draws(node: ast.AST) -> Iterator[_Drawn]:
    """Yield the places of the draws of an order of numbers in an expression."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and part.args:
            given = part.args[0]
            counts = isinstance(given, ast.Constant | ast.BinOp) or (
                isinstance(given, ast.Call) and called(given) == "len"
            )
            if called(part) == "permutation" and "torch" not in ast.unparse(part.func):
                if counts or isinstance(given, ast.Name):
                    yield _place(part)
            elif called(part) == "sample" and isinstance(given, ast.Call) and called(given) == "range":
                yield _place(part)


def _named(node: ast.AST, orders: dict[str, _Drawn]) -> Iterator[_Drawn]:
    counted = {id(it) for part in ast.walk(node) if _is_count(part) for it in ast.walk(part)}
    for part in ast.walk(node):
        known = isinstance(part, ast.Name | ast.Attribute) and id(part) not in counted
        if known and ast.unparse(part) in orders:
            yield orders[ast.unparse(part)]


def _is_count(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and called(node) in ("len", "range")


def _bind(loop: ast.For, orders: dict[str, _Drawn]) -> None:
    """Hand orders on to the targets of a loop over them, itself or in pairs."""
    pairs: list[tuple[ast.expr, ast.expr]] = [(loop.target, loop.iter)]
    if isinstance(loop.iter, ast.Call) and called(loop.iter) == "zip" and isinstance(loop.target, ast.Tuple):
        pairs = list(zip(loop.target.elts, loop.iter.args, strict=False))
    for target, value in pairs:
        drawn = next(iter(_named(value, orders)), None)
        if drawn is not None and isinstance(target, ast.Name):
            orders[target.id] = drawn


def _name(node: ast.expr) -> str:
    """Return what the rows of an expression are called, past what converts them."""
    while isinstance(node, ast.Call) and (node.args or isinstance(node.func, ast.Attribute)):
        node = node.args[0] if node.args else node.func.value  # type: ignore[attr-defined]
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def _is_labels(name: str) -> bool:
    return _LABELS.match(name.rpartition(".")[2]) is not None
