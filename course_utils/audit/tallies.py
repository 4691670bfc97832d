"""What a script measures batch by batch and divides at the end: the last batch for all, or by another count."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from course_utils.audit.lines import Spot
from course_utils.audit.loops import goes_through
from course_utils.audit.mentions import names_read, parts
from course_utils.audit.reading import Scopes, Seen, Told
from course_utils.audit.shuffles import own_lines
from course_utils.explain.source import called, names_of

_SIZES = re.compile(r"len\(|\.size\(|\.shape\b|\.numel\(|\.shape\[0\]")
_LOSSES = re.compile(r"loss|criterion|crit\b|entropy|_loss\(|mse|bce|nll", re.I)


class _Tally(NamedTuple):
    """A name that a loop over batches binds or adds to."""

    name: str
    line: ast.Assign | ast.AugAssign
    adds: bool


def tallies(scopes: Scopes, seen: Seen) -> Iterator[Told]:
    """Yield the quotients of what a loop measured that do not fit how it was measured."""
    summed = any("reduction='sum'" in ast.unparse(scope) for _, scope in scopes if isinstance(scope, ast.FunctionDef))
    for file, scope in scopes:
        nodes = list(parts(scope))
        for loop in nodes:
            if isinstance(loop, ast.For):
                batches = ast.unparse(goes_through(loop.iter))
                kept = list(_tallies(loop))
                for quotient in _quotients_after(nodes, loop):
                    yield from _judged(file, loop, kept, quotient, batches, seen, summed)


def _tallies(loop: ast.For) -> Iterator[_Tally]:
    for line in own_lines(loop):
        if isinstance(line, ast.AugAssign) and isinstance(line.op, ast.Add) and isinstance(line.target, ast.Name):
            yield _Tally(line.target.id, line, True)
        elif isinstance(line, ast.Assign) and len(line.targets) == 1 and isinstance(line.targets[0], ast.Name):
            name = line.targets[0].id
            yield _Tally(name, line, name in names_read(line.value))


def _quotients_after(nodes: list[ast.AST], loop: ast.For) -> Iterator[ast.BinOp]:
    """Yield the quotients that stand after a loop, and before the next line that binds what they divide anew."""
    end = loop.end_lineno or loop.lineno
    for node in nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and node.lineno > end:
            name = _divided(node)
            bound = [
                it.lineno
                for it in nodes
                if isinstance(it, ast.Assign | ast.AugAssign | ast.For)
                and name in names_of(*(it.targets if isinstance(it, ast.Assign) else [it.target]))
                and end < it.lineno < node.lineno
            ]
            if name and not bound:
                yield node


def _divided(node: ast.BinOp) -> str:
    """Return the name of what is divided, past a factor of 100 and a call of `item` or `float`."""
    left: ast.expr = node.left
    while True:
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mult):
            left = left.right if isinstance(left.left, ast.Constant) else left.left
        elif isinstance(left, ast.Call) and called(left) in ("item", "float", "double"):
            left = left.func.value if isinstance(left.func, ast.Attribute) else left.args[0]
        else:
            return left.id if isinstance(left, ast.Name) else ""


def _judged(
    file: str, loop: ast.For, kept: list[_Tally], node: ast.BinOp, batches: str, seen: Seen, summed: bool
) -> Iterator[Told]:
    name, by = _divided(node), ast.unparse(node.right)
    mine = [it for it in kept if it.name == name]
    added = {it.name for it in kept if it.adds}
    all_of_them = by in (f"len({batches})", f"len({batches}.dataset)") or by in added
    if len(mine) != 1 or name in added.intersection({by}):
        return
    tally = mine[0]
    reads = [it for it in ast.walk(loop) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Load) and it.id == name]
    if not tally.adds and all_of_them and not reads and isinstance(tally.line, ast.Assign):
        if any(isinstance(it, ast.Call) for it in ast.walk(tally.line.value)):
            yield _last(Spot(file, tally.line.lineno), name, by)
    elif tally.adds and by == f"len({batches})" and _counts(tally.line.value) and _many(file, loop, seen):
        yield _by_batches(Spot(file, node.lineno), name, by)
    elif tally.adds and not summed and _of_rows(by, batches) and _is_mean(tally.line.value, loop):
        yield _by_rows(Spot(file, node.lineno), name, by)


def _counts(value: ast.expr) -> bool:
    """Say whether what is added counts the rows that were right."""
    text = ast.unparse(value)
    compares = any(isinstance(it, ast.Compare) and isinstance(it.ops[0], ast.Eq) for it in ast.walk(value))
    return (compares or ".eq(" in text) and ("sum(" in text) and "mean(" not in text and "/" not in text


def _many(file: str, loop: ast.For, seen: Seen) -> bool:
    """Say whether the models that a loop calls are given several rows at once."""
    lines = range(loop.lineno, (loop.end_lineno or loop.lineno) + 1)
    rows = [asked.most for spot, asked in seen.asked.items() if spot.file == file and spot.line in lines]
    return bool(rows) and min(rows) > 1


def _of_rows(by: str, batches: str) -> bool:
    return by == f"len({batches}.dataset)"


def _is_mean(value: ast.expr, loop: ast.For) -> bool:
    """Say whether what is added is one loss of a batch as it came, by no count of rows."""
    text = ast.unparse(value)
    plain = isinstance(value, ast.Call) and called(value) == "item" and not _SIZES.search(text)
    body = " ".join(ast.unparse(it) for it in loop.body)
    return plain and _LOSSES.search(text) is not None and not re.search(r"reduction=['\"]sum|\.sum\(", body)


def _last(spot: Spot, name: str, by: str) -> Told:
    return Told(
        "metric-miscounted",
        spot,
        f"{name} is that of the last batch alone, and is divided by {by}, which counts all of them",
        "Each round binds the name anew, and what the rounds before gave is lost. The quotient is far too small, "
        "whatever the model has learned.",
        f"{name} += ...  # and {name} = 0 before the loop",
        (name,),
    )


def _by_batches(spot: Spot, name: str, by: str) -> Told:
    return Told(
        "metric-miscounted",
        spot,
        f"{name} counts rows, and is divided by {by}, the number of batches",
        "The quotient is the number of hits in a batch, and no share of all rows: it can be larger than 1, and changes "
        "with the batch size.",
        f"{name} / {by[:-1]}.dataset)",
        (name,),
    )


def _by_rows(spot: Spot, name: str, by: str) -> Told:
    return Told(
        "metric-miscounted",
        spot,
        f"{name} adds up means of batches, and is divided by {by}, the number of rows",
        "A loss is the mean over its batch unless reduction says otherwise. The sum of means divided by the number of "
        "rows is too small by the batch size; it only compares with itself.",
        f"{name} / len(loader)  # or add loss.item() * len(x)",
        (name,),
        "note",
    )
