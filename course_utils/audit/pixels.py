"""Pixels in a script's text: where they are divided by 255, and where a mean of numbers from 0 to 1 is taken away."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parts

_WHOLE = (255, 256)
_MEANS = (0.485, 0.4914, 0.1307, 0.2860, 0.5071)  # of images of known data sets, between 0 and 1


def divided_twice(scopes: Iterable[tuple[str, ast.AST]]) -> tuple[Spot, Spot] | None:
    """Return the first and the last of several lines that divide by 255; None where there is one or none."""
    found = sorted(
        {
            Spot(file, node.lineno)
            for file, scope in scopes
            for node in parts(scope)
            if isinstance(node, ast.BinOp | ast.AugAssign) and _is_by_whole(node)
        }
    )
    return (found[0], found[-1]) if len(found) > 1 else None


def _is_by_whole(node: ast.BinOp | ast.AugAssign) -> bool:
    by = node.right if isinstance(node, ast.BinOp) else node.value
    return isinstance(node.op, ast.Div) and isinstance(by, ast.Constant) and by.value in _WHOLE


def undivided(scopes: Iterable[tuple[str, ast.AST]]) -> Spot | None:
    """Return the line that has a known mean of pixels between 0 and 1, where no line divides by 255."""
    every = [(file, node) for file, scope in scopes for node in parts(scope)]
    if any(isinstance(node, ast.BinOp | ast.AugAssign) and _is_by_whole(node) for _, node in every):
        return None
    for file, node in every:
        if isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value in _MEANS:
            return Spot(file, node.lineno)
    return None
