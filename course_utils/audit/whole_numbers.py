"""Ratios of which only the whole number is kept: below 1 they are 0."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from course_utils.audit.expressions import assigned_value
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import functions_of
from course_utils.explain.source import called

_WHOLE = frozenset({"int", "floor", "round", "trunc"})
# A ratio that grows up to a bound is a ramp. One that counts up without a bound may be meant to come in steps.
_RAMP = re.compile(r"\bmin(imum)?\(|clamp|clip|warm|anneal|ramp|progress", re.IGNORECASE)
_DEEP = 3


def says_zero(body: ast.AST) -> bool:
    """Say whether a function gives 0 on purpose: as one of two values, or as a condition taken for a number."""
    for node in ast.walk(body):
        values = [node.body, node.orelse] if isinstance(node, ast.IfExp) else []
        if isinstance(node, ast.Return) and node.value is not None:
            values.append(node.value)
        if any(isinstance(it, ast.Constant) and it.value == 0 for it in values):
            return True
        counts = node.args if isinstance(node, ast.Call) and called(node) in ("float", "int") else []
        if any(isinstance(it, ast.Compare) for it in counts):
            return True
    return False


def division(file: str, scope: ast.AST | None) -> Spot | None:
    """Return the line of a function that divides and keeps only whole numbers."""
    for node in ast.walk(scope) if scope is not None else ():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            return Spot(file, node.lineno)
        if isinstance(node, ast.Call) and called(node) in _WHOLE:
            parts = [part for given in node.args for part in ast.walk(given)]
            if any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div) for part in parts):
                return Spot(file, node.lineno)
    return None


def whole_weight(spot: Spot, factor: ast.AST, deep: int = _DEEP) -> Spot | None:
    """Return the line that divides and keeps the whole number, where a factor at `spot` comes from a ramp by that."""
    here = division(spot.file, factor)
    if here is not None:
        return here if _RAMP.search(ast.unparse(factor)) and not says_zero(factor) else None
    return next((it for it in _behind(spot, factor, deep - 1) if it is not None), None) if deep else None


def _behind(spot: Spot, factor: ast.AST, deep: int) -> Iterator[Spot | None]:
    for node in ast.walk(factor):
        if isinstance(node, ast.Call):
            for body in functions_of(spot.file).get(called(node), ()):
                yield whole_weight(Spot(spot.file, getattr(body, "lineno", spot.line)), body, 0)
        elif isinstance(node, ast.Name | ast.Attribute):
            name = ast.unparse(node)
            value = assigned_value(spot, name)
            if value is None:
                continue
            found = whole_weight(Spot(spot.file, value.lineno), value, deep)
            named = division(spot.file, value) if _RAMP.search(name) and not says_zero(value) else None
            yield found or named
