"""What a line computes, as its source says: its factors, and the models that a loop takes in pairs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from course_utils.audit.lines import Spot
from course_utils.audit.source import around, blocks_of, statement


def zipped_parameters(spot: Spot) -> Iterator[tuple[str, str]]:
    """Yield the names of the two models whose parameters the loops around a line take in pairs."""
    for node in around(spot):
        call = node.iter if isinstance(node, ast.For) else None
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "zip" and len(call.args) == 2:
            one, other = (ast.unparse(part) for part in call.args)
            if one.endswith(".parameters()") and other.endswith(".parameters()"):
                yield one.removesuffix(".parameters()"), other.removesuffix(".parameters()")


@lru_cache(maxsize=512)
def products(spot: Spot) -> tuple[tuple[str, bool], ...]:
    """Return the factors at a line, each with whether it is a difference: (returns - value, True)."""
    found = statement(spot)
    factors = [
        part
        for node in (ast.walk(found) if found is not None and not blocks_of(found) else ())
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
        for part in (node.left, node.right)
    ]
    return tuple((ast.unparse(it), isinstance(it, ast.BinOp) and isinstance(it.op, ast.Sub)) for it in factors)
