"""What the source of a learner's class says, also after its script has ended."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FunctionType

from course_utils.audit.lines import Spot
from course_utils.audit.source import around


def assigned_anywhere(kind: type, name: str) -> Spot | None:
    """Return the line of a class's source that assigns to `name`, as in "self.layers"."""
    return next((spot for spot, _ in _assignments(kind, name)), None)


def assigned_from_itself(kind: type, name: str) -> Spot | None:
    """Return the line of a class's source that computes `name` from its own value."""
    for spot, value in _assignments(kind, name):
        if any(isinstance(part, ast.Attribute) and ast.unparse(part) == name for part in ast.walk(value)):
            return spot
    return None


def _assignments(kind: type, name: str) -> Iterator[tuple[Spot, ast.expr]]:
    node, file = class_source(kind)
    parts = [part for part in (ast.walk(node) if node is not None else ()) if isinstance(part, ast.stmt)]
    for part in sorted(parts, key=lambda it: it.lineno):
        if isinstance(part, ast.Assign | ast.AnnAssign | ast.AugAssign) and part.value is not None:
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            for target in targets:
                inside = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
                if any(ast.unparse(it) == name for it in inside):
                    yield Spot(file, part.lineno), part.value


def class_source(kind: type) -> tuple[ast.ClassDef | None, str]:
    """Return where a class is defined, and its file, as its methods tell: a script that ended has no module."""
    own = (getattr(value, "__func__", value) for value in vars(kind).values())
    codes = [function.__code__ for function in own if isinstance(function, FunctionType)]
    for code in codes:
        for node in around(Spot(code.co_filename, code.co_firstlineno)):
            if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
                return node, code.co_filename
    return None, ""
