"""A best value that takes each new one, better or not: where the source writes it past its own comparison."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import torch

from course_utils.audit.choices import binds, is_best
from course_utils.audit.holders import variables
from course_utils.audit.source import blocks_of, taken_apart, tree_of

_LEAVES = (ast.Continue, ast.Break, ast.Return, ast.Raise)
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class Written(NamedTuple):
    """The line that writes a best value in any case, its name, and what it is compared with."""

    line: int
    best: str
    metric: str
    rises: bool  # a larger value is the better one


class Kept:
    """The values that such lines left, as the running frames have them at each pass."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, Written, str], float] = {}
        self._last: dict[tuple[str, Written, str], float] = {}
        self._moves: dict[tuple[str, Written], tuple[int, int]] = {}  # how often one became better, and worse

    def look(self, file: str) -> None:
        """Look at the best values of a file, where it has a line that writes one in any case."""
        found = always_written(file)
        for spot, name, value in variables() if found else ():
            for written in found:
                owner, _, best = name.rpartition(".")
                whose, _, wanted = written.best.rpartition(".")
                if spot.file == file and best == wanted and bool(owner) == bool(whose):
                    self._note(file, written, name, value)

    def _note(self, file: str, written: Written, name: str, value: object) -> None:
        """Note one value. One that is what it was at first begins a new search."""
        single = isinstance(value, torch.Tensor) and value.numel() == 1
        number = float(value) if single or isinstance(value, int | float) else math.nan  # type: ignore[arg-type]
        at = file, written, name
        first, last = self._first.setdefault(at, number), self._last.get(at, number)
        self._last[at] = number
        if math.isfinite(last) and math.isfinite(number) and number not in (first, last):
            better, worse = self._moves.get((file, written), (0, 0))
            is_better = (number > last) == written.rises
            self._moves[file, written] = better + is_better, worse + (not is_better)

    def worsened(self) -> Iterator[tuple[str, Written, int]]:
        """Yield the best values that were seen to become worse, and better as well, with how often worse."""
        for (file, written), (better, worse) in self._moves.items():
            if better and worse:
                yield file, written, worse


@lru_cache(maxsize=64)
def always_written(file: str) -> tuple[Written, ...]:
    """Return the best values of a file that are compared with a value, and are given it either way."""
    tree = tree_of(file)
    return tuple(dict.fromkeys(it for node in (ast.walk(tree) if tree else ()) for it in _in_block(node)))


def _in_block(scope: ast.AST) -> Iterator[Written]:
    """Yield what is written in one of the lists of statements of a block."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(scope, name, None)
        lines = [it for it in block if isinstance(it, ast.stmt)] if isinstance(block, list) else []
        for at, node in enumerate(lines):
            for best, metric, rises in _comparisons(node):
                if isinstance(node, ast.If) and (line := _in_both(node, best, metric)):
                    yield Written(line, best, metric, rises)
                elif not _may_leave(node) and not any(binds([node], name) for name in (best, metric)):
                    after = (line for it in lines[at + 1 :] if (line := _assigns(it, best, metric)))
                    yield from (Written(line, best, metric, rises) for line in list(after)[:1])


def _comparisons(node: ast.stmt) -> Iterator[tuple[str, str, bool]]:
    """Yield the best values and what they are compared with, in the test of an `if` or in what is assigned."""
    test = node.test if isinstance(node, ast.If) else node.value if isinstance(node, ast.Assign) else None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], _ORDERS):
        return
    one, other = test.left, test.comparators[0]
    larger = isinstance(test.ops[0], ast.Gt | ast.GtE)
    if is_best(other) and isinstance(one, ast.Name):
        yield ast.unparse(other), one.id, larger
    elif is_best(one) and isinstance(other, ast.Name):
        yield ast.unparse(one), other.id, not larger


def _in_both(node: ast.If, best: str, metric: str) -> int:
    """Return the line of the second branch where both give a best value the same, at their top."""
    ours = any(_assigns(it, best, metric) for it in node.body)
    theirs = next((line for it in node.orelse if (line := _assigns(it, best, metric))), 0)
    return theirs if ours else 0


def _assigns(node: ast.stmt, best: str, metric: str) -> int:
    """Return the line of a statement that gives a best value what was compared with it; 0 for any other."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return 0
    targets = taken_apart(node.targets[0])
    values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    pairs = zip(targets, values, strict=False) if len(targets) == len(values) else []
    return next((node.lineno for to, value in pairs if (ast.unparse(to), ast.unparse(value)) == (best, metric)), 0)


def _may_leave(node: ast.stmt) -> bool:
    """Say whether what follows a statement may not run for the reason that stands in it."""
    return isinstance(node, _LEAVES) or any(_may_leave(it) for it in blocks_of(node))
