"""Lines that write in place into what they read from a store: a row of a data set, or a part of a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from course_utils.audit.classes import class_source
from course_utils.audit.source import blocks_of


class Write(NamedTuple):
    """A line that writes into a local name, and the texts of what the name was read from: "self.x", or "x"."""

    line: int
    name: str
    roots: frozenset[str]
    file: str = ""  # where it is another than the store's


def writes(scope: ast.AST) -> Iterator[Write]:
    """Yield the lines of a function that write in place into parts of a store, and hand the part on."""
    aliases = _aliases(scope)
    handed = _handed(scope)
    for node in ast.walk(scope):
        name = _written(node)
        if name is None:
            continue
        roots = aliases.get(name, frozenset())
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript) and name not in aliases:
            roots = frozenset({name})  # self.x[i] += noise
        if roots and name in handed:
            yield Write(node.lineno, name, roots)  # type: ignore[attr-defined]


def writes_to_parameter(scope: ast.FunctionDef) -> Write | None:
    """Return the line of a function that writes into its own parameter, and gives that back."""
    bound = {ast.unparse(to) for it in ast.walk(scope) if isinstance(it, ast.Assign) for to in it.targets}
    names = ({it.arg for it in scope.args.args} - {"self"} - bound) & _returned(scope)
    for node in ast.walk(scope):
        name = _written(node)
        if name is not None and name in names:
            return Write(node.lineno, name, frozenset({name}))  # type: ignore[attr-defined]
    return None


def _written(node: ast.AST) -> str | None:
    """Return the text of what a statement or call writes into: the name, without an index."""
    target: ast.expr | None = None
    if isinstance(node, ast.AugAssign):
        target = node.target
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        target = node.func.value if name.endswith("_") and name not in ("requires_grad_", "__init__") else None
    while isinstance(target, ast.Subscript):
        target = target.value
    return ast.unparse(target) if isinstance(target, ast.Name | ast.Attribute) else None


def _aliases(scope: ast.AST) -> dict[str, frozenset[str]]:
    """Return the local names that may be parts of a store: bound to an index, or by a loop over one."""
    found: dict[str, frozenset[str]] = {}
    for node in ast.walk(scope):
        targets: list[ast.expr] = []
        value: ast.expr | None = None
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
            if not any(isinstance(it, ast.Subscript) for it in ast.walk(value)):
                continue
        elif isinstance(node, ast.For):
            targets, value = [node.target], node.iter
        if value is None:
            continue
        roots = {ast.unparse(it) for it in ast.walk(value) if isinstance(it, ast.Name | ast.Attribute)}
        names = [it.id for target in targets for it in ast.walk(target) if isinstance(it, ast.Name)]
        for name in names:
            if not any(isinstance(it, ast.Subscript | ast.Attribute) for it in targets):
                found[name] = frozenset(roots - {name, "self"}) | found.get(name, frozenset())
    return found


def _returned(scope: ast.AST) -> set[str]:
    parts = [it.value for it in ast.walk(scope) if isinstance(it, ast.Return | ast.Yield) and it.value is not None]
    return {ast.unparse(it) for part in parts for it in ast.walk(part) if isinstance(it, ast.Name | ast.Attribute)}


def _handed(scope: ast.AST) -> set[str]:
    """Return the texts of what a function gives back, or gives to a call by its name."""
    found = _returned(scope)
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found |= {ast.unparse(it) for it in node.args if isinstance(it, ast.Name)}
    return found


def methods_called(thing: object) -> Iterator[tuple[ast.FunctionDef, str]]:
    """Yield the methods that run when a thing of a class of the learner's is called, each with its file."""
    kind, file = class_source(type(thing))
    for name in ("__call__", "forward") if kind is not None else ():
        function = method(kind, name)  # type: ignore[arg-type]
        if function is not None:
            yield function, file


def method(kind: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    """Return a method of a class's source."""
    return next((it for it in blocks_of(kind) if isinstance(it, ast.FunctionDef) and it.name == name), None)
