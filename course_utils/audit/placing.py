"""Positions that are counted along the batch, in front of layers that take the batch first."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parts
from course_utils.audit.reading import Scopes, Seen, Told
from course_utils.explain.source import called

_BATCH_FIRST = re.compile(r"(Transformer\w*Layer|MultiheadAttention|Transformer)\([^)]*batch_first=True", re.DOTALL)
_TURNED = re.compile(
    r"transpose\(\s*0\s*,\s*1|permute\(\s*1\s*,\s*0|swapaxes\(\s*0\s*,\s*1|movedim|rearrange|\.mT\b|\.T\b"
)
_POSITIONS = re.compile(r"(^|_)(pe|pos\w*)(_|$)", re.IGNORECASE)


def along_batch(scopes: Scopes, seen: Seen) -> Iterator[Told]:
    """Yield the lines that add to sequences as many positions as there are sequences."""
    if any(it.axes < 2 for it in seen.asked.values()):
        return  # a sequence by itself has its positions along the first axis
    for file, scope in scopes:
        text = "".join(linecache.getlines(file))
        if not _BATCH_FIRST.search(text) or _TURNED.search(text):
            continue
        for node in parts(scope):
            for given, added in _sums(node):
                counted = next((it for it in ast.walk(added) if isinstance(it, ast.expr) and _counts(it, given)), None)
                if counted is not None:
                    yield Told(
                        "positions-of-batch",
                        Spot(file, counted.lineno),
                        f"positions are counted along the batch: {ast.unparse(counted)}",
                        f"The attention behind it takes the batch first, so axis 0 of {given} goes through samples. "
                        "All places of a sequence get the same, and which sample gets what hangs on its row.",
                        f"{given}.size(1)  # along the sequence: of shape (1, time, width), to be added to each sample",
                        (given,),
                    )


def _sums(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield what has a name in a sum, and what is added to it."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        pairs = [(node.left, node.right), (node.right, node.left)]
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        pairs = [(node.target, node.value)]
    for given, added in pairs:
        inner = given.args[0] if isinstance(given, ast.Call) and given.args else given
        if isinstance(inner, ast.Name):
            yield inner.id, added


def _counts(node: ast.expr, given: str) -> bool:
    """Say whether an expression takes as many positions as something has rows."""
    rows = {f"{given}.size(0)", f"{given}.shape[0]", f"len({given})"}
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.upper is not None:
        name = ast.unparse(node.value).rpartition(".")[2]
        return _POSITIONS.search(name) is not None and ast.unparse(node.slice.upper) in rows
    if isinstance(node, ast.Call) and _POSITIONS.search(called(node)):
        numbers = [it for it in ast.walk(node) if isinstance(it, ast.Call) and called(it) == "arange" and it.args]
        return any(ast.unparse(it.args[0]) in rows for it in numbers)
    return False
