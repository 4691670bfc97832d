"""Loops that take their rows by chance: over a loader that shuffles, or over parts of an order that was drawn."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from torch.utils.data import DataLoader, RandomSampler, SubsetRandomSampler, WeightedRandomSampler

from course_utils.audit.lines import Spot
from course_utils.audit.loops import value_of
from course_utils.audit.mentions import functions_of, own, parts
from course_utils.audit.source import blocks_of, function_around, taken_apart
from course_utils.explain.source import called, names_of

_SAMPLERS = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)
_ORDER = re.compile(r"(\brandperm|\.permutation|\brandom\.sample|\brandom\.choices?|^shuffled?)$")
_ROWS = re.compile(r"(\brandint|\.integers|\brandrange|\.choice)$")
_KEEPS = frozenset({"split", "chunk", "tolist", "numpy", "long", "to", "astype", "clone", "view", "reshape", "tensor"})
_KEEPS_FIRST = frozenset({"list", "tuple", "iter", "enumerate", "array_split", "as_tensor", "from_numpy", "tqdm"})
_GOES_ROUND = 3


def is_shuffled(loop: ast.For | ast.While, spot: Spot, known: dict[str, Any]) -> bool:
    """Say whether the rounds of a loop take rows that have nothing to do with each other.

    `spot` is a line in the loop, `known` what the names of its frame stand for.
    """
    if isinstance(loop, ast.For) and any(_draws_rows(value_of(it, known)) for it in _named(loop.iter)):
        return True
    scope = function_around(spot)
    return scope is not None and _by_source(loop, spot.file, scope)


def _draws_rows(value: Any) -> bool:
    if not isinstance(value, DataLoader):
        return False
    sampler = value.sampler if value.batch_sampler is None else getattr(value.batch_sampler, "sampler", None)
    return isinstance(sampler, _SAMPLERS)


def _named(node: ast.expr) -> Iterator[ast.expr]:
    """Yield what a loop goes through, past `enumerate` and the like."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        yield node
    elif isinstance(node, ast.Call):
        for it in node.args:
            yield from _named(it)


@lru_cache(maxsize=256)
def _by_source(loop: ast.For | ast.While, file: str, scope: ast.AST) -> bool:
    if isinstance(loop, ast.For):
        made = functions_of(file).get(called(loop.iter), ())
        if any(isinstance(it, ast.FunctionDef) and _hands_out_rows(it, file) for it in made):
            return True
    orders = _orders(scope)
    if isinstance(loop, ast.For) and _is_order(loop.iter, orders):
        return True
    targets = names_of(loop.target) if isinstance(loop, ast.For) else set()
    mine = [it for it in own_lines(loop) if not isinstance(it, ast.For | ast.While)]
    picks = {
        ast.unparse(to) for it in mine if isinstance(it, ast.Assign) and _picks(it.value, orders, targets)
        for to in it.targets
    }  # fmt: skip
    drawn = {
        ast.unparse(to) for it in mine if isinstance(it, ast.Assign) and _is_drawn(it.value, _ROWS)
        for to in it.targets
    }  # fmt: skip
    read = [part for it in mine for part in ast.walk(it) if isinstance(part, ast.Subscript)]
    if any(names_of(it.slice) & picks or _picks(it.slice, orders, targets) for it in read):
        return True
    if any(_is_shuffled_rows(it, scope, orders, targets) for it in read):
        return True
    # Numbers that are drawn may be contents as well: rows are what several things are asked for, or windows begin at.
    owners = {ast.unparse(it.value) for it in read if drawn & names_of(it.slice)}
    begins = [it for it in read if isinstance(it.slice, ast.Slice) and _begins_at(it.slice, drawn, mine)]
    return len(owners) > 1 or bool(begins)


def _hands_out_rows(function: ast.FunctionDef, file: str) -> bool:
    """Say whether a generator has one loop, which takes its rows by chance."""
    lines = list(own(function))
    loops = [it for it in lines if isinstance(it, ast.For | ast.While)]
    hands = any(isinstance(it, ast.Yield) for line in lines for it in ast.walk(line))
    return hands and len(loops) == 1 and called(getattr(loops[0], "iter", None)) != function.name and (
        _by_source(loops[0], file, function)
    )  # fmt: skip


def own_lines(loop: ast.For | ast.While) -> Iterator[ast.stmt]:
    """Yield the statements of a loop, without those of the loops in it."""
    queue = list(loop.body)
    while queue:
        node = queue.pop(0)
        yield node
        if not isinstance(node, ast.For | ast.While | ast.FunctionDef | ast.ClassDef):
            queue += blocks_of(node)


def _orders(scope: ast.AST) -> set[str]:
    """Return the names in a function that stand for a drawn order, or for parts of one."""
    found: set[str] = set()
    nodes = list(parts(scope))
    for _ in range(_GOES_ROUND):
        for node in nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and _is_order(node.value, found):
                found.add(ast.unparse(node.targets[0]))
            elif isinstance(node, ast.Call) and called(node) == "shuffle" and len(node.args) == 1:
                found.add(ast.unparse(node.args[0]))
    return found


def _is_order(node: ast.expr, orders: set[str]) -> bool:
    """Say whether an expression stands for a drawn order, or for parts of one."""
    if isinstance(node, ast.Name | ast.Attribute):
        return ast.unparse(node) in orders
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice) and _is_order(node.value, orders)
    if not isinstance(node, ast.Call):
        return False
    if _is_drawn(node, _ORDER):
        return True
    if isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS and _is_order(node.func.value, orders):
        return True
    return called(node) in _KEEPS | _KEEPS_FIRST and bool(node.args) and _is_order(node.args[0], orders)


def _is_drawn(node: ast.expr, kind: re.Pattern[str]) -> bool:
    while isinstance(node, ast.Call) and not kind.search(ast.unparse(node.func)) and (
        isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS
    ):  # fmt: skip
        node = node.func.value
    return isinstance(node, ast.Call) and kind.search(ast.unparse(node.func)) is not None


def _picks(node: ast.expr, orders: set[str], targets: set[str]) -> bool:
    """Say whether an expression takes this round's part of a drawn order, or draws one."""
    if _is_drawn(node, _ORDER):
        return True
    return any(
        isinstance(it, ast.Subscript) and _is_order(it.value, orders) and names_of(it.slice) & targets
        for it in ast.walk(node)
    )


def _is_shuffled_rows(node: ast.Subscript, scope: ast.AST, orders: set[str], targets: set[str]) -> bool:
    """Say whether this round's slice is of rows that were put in a drawn order before: `mixed = x[order]`."""
    if not isinstance(node.slice, ast.Slice) or not names_of(node.slice) & targets:
        return False
    name = ast.unparse(node.value)
    for it in parts(scope):
        for to in it.targets if isinstance(it, ast.Assign) else ():
            for target, value in zip(taken_apart(to), taken_apart(it.value), strict=False):  # type: ignore[attr-defined]
                mixed = isinstance(value, ast.Subscript) and _is_order(value.slice, orders)
                if mixed and ast.unparse(target) == name:
                    return True
    return False


def _begins_at(window: ast.Slice, drawn: set[str], mine: list[ast.stmt]) -> bool:
    """Say whether a slice begins at a drawn number, or at one of several in a comprehension over them."""
    lower = names_of(window.lower)
    within = [it for line in mine for it in ast.walk(line) if isinstance(it, ast.comprehension)]
    each = {name for it in within if names_of(it.iter) & drawn for name in names_of(it.target)}
    return bool(lower & (drawn | each)) and window.upper is not None
