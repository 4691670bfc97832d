"""Quantile losses as a line writes them: by which of q and 1 - q a positive difference is weighed."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from course_utils.audit.events import before, constant_of, through_views
from course_utils.audit.expressions import factors_of
from course_utils.audit.lines import Spot
from course_utils.audit.source import statement
from course_utils.explain.source import called
from course_utils.graph.trace import LiveNode, node_name

_LARGER = frozenset({"max", "maximum"})
_NUMBER = r"1(\.0*)?"


def difference_in(node: LiveNode) -> LiveNode | None:
    """Return the difference that both sides of a maximum or a choice weigh, or that a product weighs row by row."""
    sides = [through_views(to) for to, _ in node.next_functions if to is not None]
    if node_name(node) == "MulBackward0":
        factor = constant_of(node) if len(sides) == 1 else None
        weighs = factor is not None and factor.numel() > 1
        return sides[0] if weighs and sides[0] is not None and node_name(sides[0]) == "SubBackward0" else None
    if node_name(node) not in ("MaximumBackward0", "WhereBackward0") or len(sides) != 2:
        return None
    found, factors = [], []
    for side in sides:
        factor = constant_of(side) if side is not None and node_name(side) == "MulBackward0" else None
        if side is None or factor is None or factor.numel() != 1:
            return None
        inner = through_views(before(side) or before(side, 1))
        found.append(inner)
        factors.append(float(factor))
    same = found[0] is not None and found[0] is found[1] and node_name(found[0]) == "SubBackward0"
    return found[0] if same and min(factors) < 0 < max(factors) and abs(sum(factors)) > 1e-6 else None


@lru_cache(maxsize=64)
def weighs_positive(spot: Spot) -> str:
    """Return which of "q" and "1 - q" weighs what is above 0 at a line; "" where that is not clear."""
    found = statement(spot)
    for node in ast.walk(found) if found is not None else ():
        pair: list[ast.expr] = []
        if isinstance(node, ast.Call) and called(node) in _LARGER and len(node.args) == 2:
            pair = node.args
        elif isinstance(node, ast.Call) and called(node) == "where" and len(node.args) == 3:
            above = _is_above(node.args[0])
            pair = [] if above == 0 else node.args[1:] if above > 0 else node.args[:0:-1]
        if pair:
            return _weights(pair, ordered=called(node) == "where")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for side in (node.left, node.right):
                if re.fullmatch(r"[\w.\[\]]+ - \(?\(?[\w.\[\]]+ <=? 0\)?(\.\w+\(\))?\)?", ast.unparse(side)):
                    return "q"
    return ""


def _is_above(condition: ast.expr) -> int:
    """Return 1 where a condition says that something is above 0, -1 where it says below, else 0."""
    if not isinstance(condition, ast.Compare) or ast.unparse(condition.comparators[0]) not in ("0", "0.0"):
        return 0
    return {ast.Gt: 1, ast.GtE: 1, ast.Lt: -1, ast.LtE: -1}.get(type(condition.ops[0]), 0)


def _weights(pair: list[ast.expr], ordered: bool) -> str:
    """Return what weighs the first of two sides; where they are not ordered, what weighs the one without a minus."""
    texts = [[ast.unparse(it) for it in factors_of(side)] for side in pair]
    for one, other in (texts,) if ordered else (texts, texts[::-1]):
        for factor in one:
            if re.fullmatch(r"[A-Za-z_][\w.\[\]]*", factor) and any(_is_rest(it, factor) for it in other):
                return "q"
            quantile = re.fullmatch(rf"{_NUMBER} - ([A-Za-z_][\w.\[\]]*)", factor)
            if quantile is not None and any(it == f"-{quantile[2]}" for it in other):
                return "1 - q"
    return ""


def _is_rest(text: str, quantile: str) -> bool:
    """Say whether a factor is q - 1, or the negative of 1 - q."""
    name = re.escape(quantile)
    return re.fullmatch(rf"{name} - {_NUMBER}|-\({_NUMBER} - {name}\)", text) is not None
