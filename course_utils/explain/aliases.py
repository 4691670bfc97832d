"""Names that show the memory of other names."""

from __future__ import annotations

import ast

from course_utils.explain.naming import targets
from course_utils.explain.source import called, walk

# Methods whose result lies in the memory of what they are called on.
_VIEWS = (
    "detach", "view", "view_as", "reshape", "flatten", "squeeze", "unsqueeze", "transpose", "permute", "t", "select",
    "narrow", "diagonal", "chunk", "split", "unbind", "unfold", "expand",
)  # fmt: skip
MAX_ALIASES = 5


def bound(scope: ast.AST) -> list[str]:
    """Return the names that a function gives a value to."""
    return list(dict.fromkeys(name for it in walk(scope) if isinstance(it, ast.Assign) for name in targets(it)))


def cut(scope: ast.AST, name: str) -> bool:
    """Return whether a name shows another's memory without its graph, as in `plain = rates.detach()`."""
    made = [it.value for it in walk(scope) if isinstance(it, ast.Assign) and name in targets(it)]
    return any(called(it) == "detach" for value in made for it in ast.walk(value))


def alias(scope: ast.AST, name: str) -> str:
    """Return the name of whose memory a name of a function shows, as in `flat = w.view(-1)`: "w" for "flat"."""
    for _ in range(MAX_ALIASES):
        made = [it.value for it in walk(scope) if isinstance(it, ast.Assign) and name in targets(it)]
        base = _shares(made[0]) if len(made) == 1 else ""
        if not base or base == name:
            return name
        name = base
    return name


def _shares(node: ast.expr) -> str:
    """Return the variable whose memory an expression shares; "" for one that makes a new tensor."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Subscript) or (
            isinstance(node, ast.Attribute) and node.attr in ("data", "T", "mT", "real")
        ):
            node = node.value
        elif isinstance(node, ast.Call) and called(node) in _VIEWS and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return ""
    return node.id
