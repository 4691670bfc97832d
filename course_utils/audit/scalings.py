"""Lines that bring numbers to one scale, and whether they are for the training part or for what is held out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import functions_of, parts
from course_utils.audit.source import around
from course_utils.explain.source import called, names_of

_HELD = re.compile(
    r"(^|_)(va|val|valid|validation|te|test|holdout|held|dev|eval|evaluate)(_|\d|$)|^x_?(v|va|val|te|test)$"
)
_TRAINED = re.compile(r"(^|_)(train|training|tr|trn|fit)(_|\d|$)|^x_?(tr|train)$")
_METHODS = frozenset({"fit_transform", "transform"})
_WHOLE = frozenset({100, 127.5, 128, 255, 256})


def scaled_apart(scopes: Sequence[tuple[str, ast.AST]]) -> tuple[Spot, str] | None:
    """Return the line that scales the training part, and what, if no line scales what is held out.

    `scopes` are the functions that ran and their files' own statements, each with its file. None as well where a line
    scales something that is neither: it may be for both.
    """
    first: tuple[Spot, str] | None = None
    for file, scope in scopes:
        for node, names in _lines(file, scope):
            place = [it.lower() for it in (*names, *_around(Spot(file, node.lineno)))]
            trained, held = any(map(_TRAINED.search, place)), any(map(_HELD.search, place))
            if held or not trained:
                return None
            first = first or (Spot(file, node.lineno), ", ".join(sorted(names_of(*node.targets))))
    return first


def _lines(file: str, scope: ast.AST) -> Iterator[tuple[ast.Assign, set[str]]]:
    """Yield the lines that bind something scaled, each with the names of what was scaled and of the result."""
    if isinstance(scope, ast.FunctionDef) and _gives_scaled(scope):
        return
    for line in parts(scope):
        if not isinstance(line, ast.Assign):
            continue
        for node in ast.walk(line.value):
            made = functions_of(file).get(called(node), ()) if isinstance(node, ast.Call) else ()
            by_call = called(node) in _METHODS or any(map(_gives_scaled, made))
            if by_call or _is_scaled(node):
                yield line, names_of(*line.targets, node)
                break


def _gives_scaled(function: ast.AST) -> bool:
    """Say whether a function returns what it scales."""
    lines = [it for it in ast.walk(function) if isinstance(it, ast.Return) and it.value is not None]
    return any(_is_scaled(part) for it in lines for part in ast.walk(it))


def _is_scaled(node: ast.AST) -> bool:
    """Say whether an expression is a difference that is divided by something named, or a quotient by a fixed scale."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
        return False
    if isinstance(node.right, ast.Constant):
        return node.right.value in _WHOLE
    return isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Sub) and bool(names_of(node.right))


def _around(spot: Spot) -> Iterator[str]:
    """Yield the names of the functions around a line, and of what the loops around it go through."""
    for node in around(spot):
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.For):
            yield from names_of(node.iter)
