"""Orders that NumPy or Python draw, and what the learner's source applies them to."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parts
from course_utils.explain.source import called

_LABELS = re.compile(
    r"^(ys?|y_?[a-z]{0,6}|(tr|te|va|train|test|val|valid|dev)_?ys?|lab\w*|\w*_?labels?|"
    r"targets?|tgts?|cls|class(es)?|tags?|answers?|truths?|gold)$",
    re.I,
)
_ALIKE = re.compile(r"\b(seed|set_state|setstate|RandomState|default_rng|Random|random_state)\b")
_DOMAINS = re.compile(r"source|src|domain", re.I)


@lru_cache(maxsize=256)
def orders_apart(file: str, scope: ast.AST) -> tuple[tuple[Spot, Spot, str, str], ...]:
    """Return the lines of a function that put rows and their labels into two different orders, with their names.

    Only orders that PyTorch does not draw: `rng.permutation`, `np.random.shuffle`, `random.shuffle`, and
    `sklearn.utils.shuffle` on one thing. Numbers that are shuffled, as of `np.arange`, are an order, and no rows.
    Nothing is returned where the random state is set between them.
    """
    nodes: list[Any] = [it for it in parts(scope) if isinstance(it, ast.stmt | ast.expr)]
    nodes.sort(key=lambda it: (it.lineno, it.col_offset))
    orders: dict[str, int] = {}
    numbers: set[str] = set()
    taken: dict[str, set[tuple[int, int]]] = {}  # by what is put in order: which draw, and the line
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
            orders[_given(node)] = node.lineno
    for node in nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            rows = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
            for drawn in [*_draws(rows), *_named(rows, orders)]:
                taken.setdefault(_name(node.value), set()).add((drawn, node.lineno))
                indexed.add(_name(node.value))
        elif isinstance(node, ast.Call) and called(node) in ("permutation", "shuffle"):
            given = _given(node)
            if given and given not in orders and given not in numbers:
                taken.setdefault(given, set()).add((node.lineno, node.lineno))
    taken.pop("", None)
    lines = [node.lineno for node in nodes if isinstance(node, ast.Call) and _ALIKE.search(ast.unparse(node))]
    return tuple(_pairs(file, taken, indexed, lines))


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
    file: str, taken: dict[str, set[tuple[int, int]]], indexed: set[str], alike: list[int]
) -> Iterator[tuple[Spot, Spot, str, str]]:
    draws = {name: {draw for draw, _ in places} for name, places in taken.items()}
    for name, mine in taken.items():
        for labels, theirs in taken.items():
            if _is_labels(name) or not _is_labels(labels) or _DOMAINS.search(name):
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
            if not any(first - 1 <= line <= last for line in alike):
                yield Spot(file, max(first, last)), Spot(file, max(line for _, line in (*mine, *theirs))), name, labels


def _draws(node: ast.AST) -> Iterator[int]:
    """Yield the lines of the draws of an order of numbers in an expression."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and part.args:
            given = part.args[0]
            counts = isinstance(given, ast.Constant | ast.BinOp) or (
                isinstance(given, ast.Call) and called(given) == "len"
            )
            if called(part) == "permutation" and "torch" not in ast.unparse(part.func):
                if counts or isinstance(given, ast.Name):
                    yield part.lineno
            elif called(part) == "sample" and isinstance(given, ast.Call) and called(given) == "range":
                yield part.lineno


def _named(node: ast.AST, orders: dict[str, int]) -> Iterator[int]:
    counted = {id(it) for part in ast.walk(node) if _is_count(part) for it in ast.walk(part)}
    for part in ast.walk(node):
        known = isinstance(part, ast.Name | ast.Attribute) and id(part) not in counted
        if known and ast.unparse(part) in orders:
            yield orders[ast.unparse(part)]


def _is_count(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and called(node) in ("len", "range")


def _bind(loop: ast.For, orders: dict[str, int]) -> None:
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
