"""Inputs that are mixed with those of other rows, and targets that are not, or with the other's share."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parts
from course_utils.audit.reading import Scopes, Seen, Told
from course_utils.explain.source import called, names_of


def mixed(scopes: Scopes, seen: Seen) -> Iterator[Told]:
    """Yield the inputs that are mixed with those of other rows, whose targets count alone or with the wrong share."""
    for file, scope in scopes:
        nodes = list(parts(scope))
        for node in nodes:
            found = _mix(node)
            if found is None:
                continue
            share, order = found
            others = [
                it for it in nodes
                if isinstance(it, ast.Subscript) and order in ast.unparse(it.slice) and not _within(it, node)
            ]  # fmt: skip
            later = [it for it in nodes if isinstance(it, ast.Return) and order in names_of(it)]
            passed = [it for it in nodes if isinstance(it, ast.Call) and order in names_of(*it.args)]
            if not others and not later and not passed and _has_loss(nodes):
                yield _alone(Spot(file, node.lineno))  # type: ignore[attr-defined]
            yield from _turned_shares(file, nodes, share, order)
        yield from _by_name(file, scope)


def _mix(node: ast.AST) -> tuple[str, str] | None:
    """Return the share and the order in `share * x + (1 - share) * x[order]`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return None
    left, right = _share(node.left), _share(node.right)
    if left is None or right is None:
        return None
    (one, x, turned), (other, y, against) = left, right
    mixes = one == other and not turned and against
    if not mixes or not isinstance(y, ast.Subscript) or not isinstance(y.slice, ast.Name):
        return None
    return (one, y.slice.id) if ast.unparse(y.value) == ast.unparse(x) else None


def _share(node: ast.expr) -> tuple[str, ast.expr, bool] | None:
    """Return the name of the share in a product, what it multiplies, and whether 1 minus the share stands there."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    for share, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(share, ast.BinOp) and isinstance(share.op, ast.Sub) and ast.unparse(share.left) in ("1", "1.0"):
            return ast.unparse(share.right), other, True
    plain = node.left if isinstance(node.left, ast.Name | ast.Attribute) else None
    return (ast.unparse(plain), node.right, False) if plain is not None else None


def _within(node: ast.AST, other: ast.AST) -> bool:
    return any(it is node for it in ast.walk(other))


def _has_loss(nodes: list[ast.AST]) -> bool:
    return any(isinstance(it, ast.Call) and called(it) == "backward" for it in nodes)


def _turned_shares(file: str, nodes: list[ast.AST], share: str, order: str) -> Iterator[Told]:
    """Yield the sum of two losses in which the targets of the other rows have the share of one's own."""
    bound = {
        ast.unparse(to) for it in nodes if isinstance(it, ast.Assign) and _ends_in(it.value, order) for to in it.targets
    }
    for node in nodes:
        for mine, theirs in _losses(node, share):
            if _speaks_of(mine, order, bound) and not _speaks_of(theirs, order, bound):
                yield _wrong_share(Spot(file, node.lineno), share)  # type: ignore[attr-defined]


def _ends_in(node: ast.expr, order: str) -> bool:
    return isinstance(node, ast.Subscript) and ast.unparse(node.slice) == order


def _speaks_of(node: ast.expr, order: str, bound: set[str]) -> bool:
    return isinstance(node, ast.Call) and any(_ends_in(it, order) or ast.unparse(it) in bound for it in node.args)


def _losses(node: ast.AST, share: str) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the two losses in a sum, that with the share first and that with the rest second."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [it for it in (_share(node.left), _share(node.right)) if it is not None and it[0] == share]
        if len(sides) == 2 and sides[0][2] != sides[1][2] and all(isinstance(it[1], ast.Call) for it in sides):
            mine, theirs = sorted(sides, key=lambda it: it[2])
            yield mine[1], theirs[1]


def _by_name(file: str, scope: ast.AST) -> Iterator[Told]:
    """Yield the losses of targets that are called a and b, with the shares of b and a."""
    if not isinstance(scope, ast.FunctionDef) or not re.search("mix", scope.name):
        return
    for node in parts(scope):
        for share in {it[0] for it in map(_share, _terms(node)) if it is not None}:
            for mine, theirs in _losses(node, share):
                if _called(mine, "b") and _called(theirs, "a"):
                    yield _wrong_share(Spot(file, node.lineno), share)  # type: ignore[attr-defined]


def _terms(node: ast.AST) -> list[ast.expr]:
    return [node.left, node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) else []


def _called(node: ast.expr, letter: str) -> bool:
    given = node.args if isinstance(node, ast.Call) else []
    return any(isinstance(it, ast.Name) and re.search(rf"(y|target|label)s?_?{letter}$", it.id) for it in given)


def _alone(spot: Spot) -> Told:
    return Told(
        "mixed-apart",
        spot,
        "inputs are mixed with those of other rows, and the targets of these count for nothing",
        "A part of each input comes from another sample. Without that sample's target the model is taught that the "
        "mixture is of one class alone.",
        "loss = lam * criterion(out, y) + (1 - lam) * criterion(out, y[order])",
    )


def _wrong_share(spot: Spot, share: str) -> Told:
    return Told(
        "mixed-apart",
        spot,
        f"the targets have each other's share: {share} belongs to those of the rows themselves",
        f"The input is {share} of its own row and the rest of the other one. With the shares of the targets the other "
        "way round, the row that is hardly there counts most.",
        f"loss = {share} * criterion(out, y) + (1 - {share}) * criterion(out, y[order])",
    )
