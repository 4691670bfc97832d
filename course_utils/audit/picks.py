"""Classes that a script picks by the largest of a model's outputs, and the calls that made these."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from course_utils.audit.mentions import functions_of, parts
from course_utils.audit.source import taken_apart
from course_utils.explain.source import applied_to, called

_CASTS = frozenset(
    {
        *("cpu", "numpy", "detach", "float", "double", "to", "clone", "array", "asarray", "contiguous"),
        *("sigmoid", "softmax", "log_softmax", "exp", "tanh", "from_numpy", "tensor", "as_tensor"),
    }
)
_LIBRARIES = ("torch", "F", "np", "numpy", "nn", "functional")
_SIZES = re.compile(r"shape|size\(|\bdim\(|ndim|classes|binary|multi|task|n_?out|num_labels|len\(")
_DEEP = 4


@dataclass(frozen=True)
class Pick:
    """A call that picks the largest along the last axis, and the call of a model that made what it picks from."""

    line: int
    name: str
    made: ast.Call


def picks(file: str, scope: ast.AST) -> Iterator[Pick]:
    """Yield what a function picks by `argmax(1)`, `max(1)` or `topk(1)` and then uses as numbers of classes.

    Only where the script asks for no sizes or kinds of tasks: one that does may go another way for a single output.
    """
    nodes = list(parts(scope))
    tests = [it.test for it in nodes if isinstance(it, ast.If | ast.IfExp)]
    if any(_SIZES.search(ast.unparse(it)) for it in tests):
        return
    values = _values(nodes)
    for node in nodes:
        source = _picked_from(node)
        if isinstance(node, ast.Call) and source is not None and (called(node) == "argmax" or _takes(nodes, node)):
            made = _made_by(source, values, file, _DEEP)
            if made is not None:
                yield Pick(node.lineno, called(node), made)


def _values(nodes: list[ast.AST]) -> dict[str, list[ast.expr | None]]:
    """Return what a function binds to each name; None for what is bound otherwise than by a plain assignment."""
    values: dict[str, list[ast.expr | None]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                plain = isinstance(target, ast.Name)
                for part in taken_apart(target):
                    values.setdefault(ast.unparse(part), []).append(node.value if plain else None)
        elif isinstance(node, ast.For | ast.comprehension | ast.AugAssign | ast.NamedExpr):
            for part in taken_apart(node.target):
                values.setdefault(ast.unparse(part), []).append(None)
    return values


def _picked_from(node: ast.AST) -> ast.expr | None:
    """Return what a call takes the largest of along the last of two axes; None for any other call."""
    if not isinstance(node, ast.Call) or called(node) not in ("argmax", "max", "topk"):
        return None
    if not isinstance(node.func, ast.Attribute):
        return None
    free = ast.unparse(node.func.value) in _LIBRARIES
    if free and (not node.args or (called(node) == "max" and ast.unparse(node.func.value) != "torch")):
        return None
    source, given = (node.args[0], node.args[1:]) if free else (node.func.value, node.args)
    named = next((it.value for it in node.keywords if it.arg in ("dim", "axis")), None)
    if called(node) == "topk":
        count = given[0] if given else next((it.value for it in node.keywords if it.arg == "k"), None)
        last = given[1] if len(given) > 1 else named
        along = count is not None and ast.unparse(count) == "1" and (last is None or ast.unparse(last) in ("1", "-1"))
        return source if along else None
    axis = given[0] if given else named
    return source if axis is not None and ast.unparse(axis) in ("1", "-1") else None


def _takes(nodes: list[ast.AST], call: ast.Call) -> bool:
    """Say whether the places of the largest are used, of all that `max` and `topk` return."""
    for node in nodes:
        if isinstance(node, ast.Subscript) and node.value is call:
            return ast.unparse(node.slice) == "1"
        if isinstance(node, ast.Attribute) and node.value is call:
            return node.attr == "indices"
        if isinstance(node, ast.Assign) and node.value is call and isinstance(node.targets[0], ast.Tuple):
            return len(node.targets[0].elts) == 2 and not ast.unparse(node.targets[0].elts[1]).startswith("_")
    return False


def _made_by(node: ast.expr, values: dict[str, list[ast.expr | None]], file: str, deep: int) -> ast.Call | None:
    """Return the call of something that is no function of the file, behind casts and names."""
    if not deep:
        return None
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return _made_by(node.value, values, file, deep)
    if isinstance(node, ast.Name):
        made = {_made_by(it, values, file, deep - 1) if it is not None else None for it in values.get(node.id, [])}
        return made.pop() if len(made) == 1 else None
    if not isinstance(node, ast.Call):
        return None
    if called(node) in _CASTS:
        inside = applied_to(node, _LIBRARIES)
        return _made_by(inside, values, file, deep) if inside is not None else None
    own = called(node) in functions_of(file) or ast.unparse(node.func).partition(".")[0] in _LIBRARIES
    return None if own and called(node) != "forward" else node
