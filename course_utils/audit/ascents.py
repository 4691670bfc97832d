"""The lines of a script that move something along a gradient by hand."""

from __future__ import annotations

import ast
import re

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parts
from course_utils.audit.source import taken_apart
from course_utils.explain.source import called, names_of

_ADDING = frozenset({"add_", "_foreach_add_", "add", "sub_", "_foreach_sub_", "addcmul_", "copy_"})
_GRADIENT = re.compile(r"\.grad\b(?!\()")


def updates(file: str, scope: ast.AST, scaled: bool = False) -> list[Spot]:
    """Return the lines that add to something a multiple of a gradient, in their order.

    With `scaled`, names for what is computed of gradients stand for gradients, too.
    """
    nodes = sorted(parts(scope), key=lambda it: getattr(it, "lineno", 0))
    slopes: set[str] = set()
    found = []
    for node in nodes:
        if isinstance(node, ast.Assign) and _is_gradient(node.value):
            slopes |= names_of(*(part for target in node.targets for part in taken_apart(target)))
        elif scaled and isinstance(node, ast.Assign) and _speaks(node.value, slopes) and _move(node) is None:
            slopes |= {ast.unparse(it).partition("[")[0] for it in node.targets if not isinstance(it, ast.Tuple)}
    for node in nodes:
        if isinstance(node, ast.For | ast.comprehension) and _speaks(node.iter, slopes):
            slopes |= _paired(node.target, node.iter, slopes)
    moves = [(node, *move) for node in nodes if (move := _move(node)) is not None]
    buffers = {
        name
        for _, moved, by in moves
        if _speaks(by, slopes)
        for name in names_of(moved)
        if any(name in names_of(other) and name not in names_of(to) for _, to, other in moves)
    }
    for node, moved, by in moves:
        text = ast.unparse(moved)
        inner = bool(names_of(moved) & (slopes | buffers)) or _GRADIENT.search(text) is not None
        if _speaks(by, slopes | buffers) and not inner and _plain(by):
            found.append(Spot(file, getattr(node, "lineno", 0)))
    return found


def _move(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """Return what a part of a script changes by adding to it, and what is added."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
        return node.target, node.value
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        name = ast.unparse(node.targets[0]).removesuffix(".data")
        read = {ast.unparse(it) for it in ast.walk(node.value) if isinstance(it, ast.expr)}
        return (node.targets[0], node.value) if name in read else None
    if isinstance(node, ast.Call) and called(node) in _ADDING and node.args:
        return node.func.value if isinstance(node.func, ast.Attribute) else node.args[0], node.args[-1]
    return None


def _is_gradient(node: ast.expr) -> bool:
    """Say whether an expression is a call of `grad` or `.grad` of something, and nothing computed of it."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return called(node) == "grad" or bool(re.fullmatch(r"[\w.\[\]]+\.grad", ast.unparse(node)))


def _speaks(node: ast.expr, slopes: set[str]) -> bool:
    return bool(_GRADIENT.search(ast.unparse(node))) or bool(names_of(node) & slopes)


def _paired(target: ast.expr, gone: ast.expr, slopes: set[str]) -> set[str]:
    """Return the names that a loop over pairs gives to gradients."""
    given = gone.args if isinstance(gone, ast.Call) and called(gone) == "zip" else []
    sides = zip(taken_apart(target), given, strict=False)
    return {name for part, it in sides if _speaks(it, slopes) for name in names_of(part)}


def _plain(node: ast.expr) -> bool:
    """Say whether what is added has no comparison or condition in it."""
    return not any(isinstance(it, ast.IfExp | ast.Compare) for it in ast.walk(node))
