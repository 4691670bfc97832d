"""What a number was computed of: through names, running sums, and the parts of what a function returns."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from course_utils.audit.directions import compared_sides, picks_highest
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import functions_named
from course_utils.audit.source import function_around, taken_apart, tree_of
from course_utils.explain.source import called, names_of

_DEEP = 8
_MOST = 60  # expressions that are looked at
_ROUNDS = frozenset(
    {
        *("float", "round", "int", "item", "mean", "sum", "double", "cpu", "detach", "array", "tensor", "to", "type"),
        *("numpy", "as_tensor", "fmean", "average", "nanmean", "stack", "cat", "squeeze", "div"),
    }
)

Part = tuple[Spot, ast.expr]


def meanings(spot: Spot, node: ast.expr) -> Iterator[ast.expr]:
    """Yield an expression, what its names were computed of, and so on, the nearest first."""
    queue: list[tuple[int, Part]] = [(0, (spot, node))]
    for depth, (at, part) in queue:
        yield part
        if depth < _DEEP and len(queue) < _MOST:
            queue += [(depth + 1, it) for it in _made_of(at, part) if it not in [known for _, known in queue]]


def _made_of(spot: Spot, node: ast.expr) -> Iterator[Part]:
    """Yield what an expression comes from: the right part of a tuple, of what a call returns, or of its names."""
    if isinstance(node, ast.Name | ast.Attribute):
        yield from _bound(spot, ast.unparse(node))
        yield from _appended(spot, ast.unparse(node))
    elif isinstance(node, ast.Subscript):
        key = _key(node.slice)
        for at, whole in (spot, node.value), *_bound(spot, ast.unparse(node.value)):
            yield from _element(at, whole, key)
        yield from _appended(spot, ast.unparse(node.value))
    elif isinstance(node, ast.Call) and called(node) not in (*_ROUNDS, "eq"):
        yield from _returned(spot, node, None)
    elif isinstance(node, ast.Call) and called(node) != "eq":
        yield from ((spot, it) for it in node.args[:1])
        if isinstance(node.func, ast.Attribute):
            yield spot, node.func.value
    elif sides := compared_sides(node):
        hits = any(isinstance(it, ast.Name) and _is_picked(spot, it.id) for it in sides)
        yield from ((spot, ast.Name("correct")),) if hits else ()
    elif isinstance(node, ast.BinOp):
        yield from ((spot, it) for it in (node.left, node.right))


def _is_picked(spot: Spot, name: str) -> bool:
    """Say whether a name stands for the class with the highest score, also as one of two that `max` gives."""
    scope = function_around(spot)
    return any(
        isinstance(node, ast.Assign) and name in names_of(*node.targets) and picks_highest(node.value)
        for node in (ast.walk(scope) if scope is not None else ())
    )


def _key(index: ast.expr) -> int | str | None:
    try:
        key = ast.literal_eval(index)
    except ValueError:
        return None
    return key if isinstance(key, int | str) else None


def _bound(spot: Spot, name: str) -> Iterator[Part]:
    """Yield what a name is bound to in the function around a line, or what is added to it there."""
    scope = function_around(spot)
    for node in ast.walk(scope) if scope is not None else ():
        if isinstance(node, ast.AugAssign | ast.AnnAssign) and ast.unparse(node.target) == name:
            if node.value is not None:
                yield Spot(spot.file, node.lineno), node.value
        elif isinstance(node, ast.Assign):
            at = Spot(spot.file, node.lineno)
            for target in node.targets:
                yield from _of_target(at, target, node.value, name)


def _appended(spot: Spot, name: str) -> Iterator[Part]:
    """Yield what the function around a line puts into a list."""
    scope = function_around(spot)
    for node in ast.walk(scope) if scope is not None else ():
        call = node if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        if call is not None and ast.unparse(call.func) == f"{name}.append" and len(call.args) == 1:
            yield Spot(spot.file, call.lineno), call.args[0]


def _of_target(spot: Spot, target: ast.expr, value: ast.expr, name: str) -> Iterator[Part]:
    parts = taken_apart(target)
    if not isinstance(target, ast.Tuple | ast.List):
        if ast.unparse(target) == name:
            yield spot, value
        return
    for at, part in enumerate(parts):
        if ast.unparse(part) == name:
            behind = any(isinstance(it, ast.Starred) for it in parts[:at])
            yield from _element(spot, value, at - len(parts) if behind else at)


def _element(spot: Spot, whole: ast.expr, key: int | str | None) -> Iterator[Part]:
    """Yield one part of a tuple, a list or a dictionary, or of what a call of the file's functions returns."""
    if isinstance(whole, ast.Tuple | ast.List):
        if isinstance(key, int) and -len(whole.elts) <= key < len(whole.elts):
            yield spot, whole.elts[key]
    elif isinstance(whole, ast.Dict):
        yield from (
            (spot, value)
            for name, value in zip(whole.keys, whole.values, strict=True)
            if isinstance(name, ast.Constant) and name.value == key
        )
    elif isinstance(whole, ast.Call):
        if called(whole) == "dict":
            yield from ((spot, it.value) for it in whole.keywords if it.arg == key)
        elif key is not None:
            yield from _returned(spot, whole, key)


def _returned(spot: Spot, call: ast.Call, key: int | str | None) -> Iterator[Part]:
    """Yield what the only function of a name returns, or the part of it that a key picks."""
    found = list(functions_named(spot.file, called(call))) if tree_of(spot.file) is not None else []
    for node in ast.walk(found[0]) if len(found) == 1 else ():
        if isinstance(node, ast.Return) and node.value is not None:
            at = Spot(spot.file, node.lineno)
            if key is None:
                yield at, node.value
                continue
            yield from _element(at, node.value, key)
            for where, whole in _bound(at, ast.unparse(node.value)) if isinstance(node.value, ast.Name) else ():
                yield from _element(where, whole, key)
