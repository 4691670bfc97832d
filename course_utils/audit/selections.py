"""Columns that are chosen by the labels of all rows, before some rows are set aside."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parts
from course_utils.audit.source import taken_apart
from course_utils.explain.source import called, names_of

_SELECTORS = re.compile(
    r"^(SelectKBest|SelectPercentile|SelectFromModel|SelectF[a-z]\w*|RFE|RFECV|\w*FeatureSelector)$"
)
_RANKS = frozenset({"argsort", "topk", "argpartition", "nonzero", "where", "sort", "flatnonzero"})
_LABELS = re.compile(
    r"^(y|ys|labels?|targets?|t|outcome|response|clicked|price|churn\w*|survived)$|(_|^)(y|label|target)(_all|_full|s)?$"
)
_SPLITS = frozenset({"train_test_split", "random_split"})


class _Split(NamedTuple):
    line: int
    rows: frozenset[str]  # what is split
    made: frozenset[str]  # what comes out


@lru_cache(maxsize=64)
def selections(file: str, scope: ast.AST) -> tuple[tuple[Spot, str, str, int], ...]:
    """Return the lines that choose columns by labels of rows that are split later: with both names, and the split."""
    lines = sorted((it for it in parts(scope) if isinstance(it, ast.Assign | ast.Expr)), key=lambda it: it.lineno)
    splits = [it for line in lines if (it := _split(line)) is not None]
    # A scope's loops over folds split as well, and bind the parts by their indices.
    found = list(_encoded(file, lines, splits))
    for line, data, labels, result in _chosen(lines):
        made = frozenset().union(*(it.made for it in splits if it.line < line))
        after = [it for it in splits if it.line > line and result in it.rows and labels in it.rows]
        if after and not {data, labels} & made:
            found.append((Spot(file, line), data, labels, after[0].line))
    return tuple(found)


def _encoded(
    file: str, lines: list[ast.Assign | ast.Expr], splits: list[_Split]
) -> Iterator[tuple[Spot, str, str, int]]:
    """Yield the means of labels, category by category, that become a column of rows which are split later."""
    for line in lines:
        found = _means(line.value) if isinstance(line, ast.Assign) else None
        if found is None or not isinstance(line, ast.Assign):
            continue
        labels, groups = found
        made = frozenset().union(*(it.made for it in splits if it.line < line.lineno))
        holds = {it.id for to in line.targets for it in [_root(to)] if it is not None} | {
            ast.unparse(to) for to in line.targets
        }
        for later in lines:
            if isinstance(later, ast.Assign) and later.lineno > line.lineno and names_of(later.value) & holds:
                holds |= {it.id for to in later.targets for it in [_root(to)] if it is not None}
            split = next((it for it in splits if it.line == later.lineno and it.line > line.lineno), None)
            if split is not None and split.rows & holds and not {labels, groups} & made:
                yield Spot(file, line.lineno), min(split.rows & holds), labels, split.line
                break


def _means(value: ast.expr) -> tuple[str, str] | None:
    """Return the names of the labels whose mean is taken in each category, and of the categories."""
    for node in ast.walk(value):
        if not isinstance(node, ast.Call) or called(node) not in ("mean", "transform", "agg", "bincount"):
            continue
        inside = node.func.value if isinstance(node.func, ast.Attribute) else None
        test = inside.slice if isinstance(inside, ast.Subscript) else None
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq) and isinstance(inside, ast.Subscript):
            name = inside.value.id if isinstance(inside.value, ast.Name) else ""
            if _LABELS.search(name):
                return name, min(names_of(test) or {""})
        grouped = isinstance(inside, ast.Subscript) and called(inside.value) == "groupby"
        if grouped and isinstance(inside, ast.Subscript) and _LABELS.search(ast.unparse(inside.slice).strip("'\"")):
            frame = inside.value.func.value  # type: ignore[attr-defined]
            return ast.unparse(inside.slice).strip("'\""), ast.unparse(frame)
        weights = next((it.value for it in node.keywords if it.arg == "weights"), None)
        if called(node) == "bincount" and isinstance(weights, ast.Name) and _LABELS.search(weights.id):
            return weights.id, min(names_of(*node.args) or {""})
    return None


def _root(node: ast.expr) -> ast.Name | None:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _split(line: ast.Assign | ast.Expr) -> _Split | None:
    """Return what a line splits into parts: by a function, or by indices that are named after their part."""
    if not isinstance(line, ast.Assign):
        return None
    made = frozenset(name for to in line.targets for name in names_of(to))
    for node in ast.walk(line.value):
        if isinstance(node, ast.Call) and called(node) in _SPLITS:
            return _Split(line.lineno, frozenset(names_of(*node.args)), made)
    if len(made) > 1 and isinstance(line.value, ast.Tuple):
        taken = [it for it in line.value.elts if isinstance(it, ast.Subscript) and not isinstance(it.slice, ast.Tuple)]
        if len(taken) == len(line.value.elts) and len({ast.unparse(it.value) for it in taken}) > 1:
            return _Split(line.lineno, frozenset(names_of(*(it.value for it in taken))), made)
    return None


def _chosen(lines: list[ast.Assign | ast.Expr]) -> Iterator[tuple[int, str, str, str]]:
    """Yield the lines that choose columns by labels: the names of the data, of the labels, and of the result."""
    selectors: set[str] = set()
    fitted: dict[str, tuple[int, str, str]] = {}
    chains: dict[str, dict[int, set[str]]] = {}  # by a name, the lines that it was computed in, and what they read
    ranks: set[str] = set()
    for line in lines:
        for node in ast.walk(line.value):
            owner = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
            if owner is None or not isinstance(node, ast.Call):
                continue
            known = ast.unparse(owner) in selectors or _is_selector(owner)
            names = [it.id for it in node.args if isinstance(it, ast.Name)]
            if known and called(node) in ("fit", "fit_transform") and len(names) == 2:
                fitted[ast.unparse(owner)] = (node.lineno, *names)  # type: ignore[assignment]
                if called(node) == "fit_transform" and isinstance(line, ast.Assign):
                    yield node.lineno, names[0], names[1], ast.unparse(line.targets[0])
            elif called(node) == "transform" and ast.unparse(owner) in fitted and isinstance(line, ast.Assign):
                at, data, labels = fitted[ast.unparse(owner)]
                if names == [data]:
                    yield at, data, labels, ast.unparse(line.targets[0])
        if not isinstance(line, ast.Assign):
            continue
        target = line.targets[0]
        if _is_selector(line.value):
            selectors.add(ast.unparse(target))
        for to, value in zip(taken_apart(target), taken_apart(line.value), strict=False):
            picked = _columns(value)
            if picked is not None and (by := picked[1] & ranks):
                yield from _ranked(picked[0], chains[next(iter(by))], ast.unparse(to))
        read = names_of(line.value)
        chain = {line.lineno: read}
        for name in read:
            chain |= chains.get(name, {})
        ranked = any(called(it) in _RANKS for it in ast.walk(line.value))
        for name in names_of(target) - read:
            chains[name] = chain
            ranks |= {name} if ranked or read & ranks else set()


def _ranked(data: str, chain: dict[int, set[str]], result: str) -> Iterator[tuple[int, str, str, str]]:
    """Yield the line that compares data with other names, of those that led to the choice of columns."""
    lines = [line for line in sorted(chain) if data in chain[line]]
    for labels in sorted(chain[lines[0]] - {data}) if lines else ():
        yield lines[0], data, labels, result


def _is_selector(node: ast.expr) -> bool:
    return any(_SELECTORS.match(called(it)) is not None for it in ast.walk(node) if isinstance(it, ast.Call))


def _columns(value: ast.expr) -> tuple[str, set[str]] | None:
    """Return what an expression takes columns of, and the names that say which: `x[:, top]`."""
    if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name) and isinstance(value.slice, ast.Tuple):
        first, *rest = value.slice.elts
        if isinstance(first, ast.Slice) and first.lower is None and first.upper is None:
            return value.value.id, names_of(*rest)
    if called(value) == "index_select" and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return ast.unparse(value.func.value), names_of(*value.args[1:])
    return None
