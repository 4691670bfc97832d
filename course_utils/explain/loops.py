"""What a loop or a function does again and again: which names it carries from one round to the next."""

from __future__ import annotations

import ast

from course_utils.explain.naming import assigned
from course_utils.explain.situation import Call
from course_utils.explain.source import Source, called, walk, written


def reads_first(call: Call, name: str) -> bool:
    """Return whether the innermost loop, or the function, uses a name before it assigns it, and does assign it."""
    if call.scope is None or call.source is None:
        return False
    outer: ast.AST = call.scope
    loops = [loop for it in assigned(call, name) if (loop := call.source.loop(it)) is not None]
    if loops:
        outer = loops[0]
    elif "." not in name:
        return False
    writes = [it for it in assigned(call, name) if any(other is outer for other in call.source.around(it))]
    if not writes:
        return False
    first = min(it.lineno for it in writes)
    for node in walk(outer):
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        if written(node) == name and node.lineno <= first:
            return True
    return any(isinstance(it, ast.AugAssign) for it in writes)


def carriers(call: Call, name: str) -> list[ast.stmt]:
    found = assigned(call, name)
    inside = [it for it in found if in_its_loop(call, it)]
    return inside or ([] if "." not in name else found)


def in_its_loop(call: Call, statement: ast.stmt) -> bool:
    """Return whether a statement is run again and again together with the failing line."""
    source = call.source
    loop = source.loop(call.node) if source is not None and call.node is not None else None
    if loop is None:
        return "." in "".join(written(it) for it in getattr(statement, "targets", [])) and not call.is_module
    return source is not None and any(it is loop for it in source.around(statement))


def base(name: str) -> str:
    """Return "hidden" for "hidden[0]"; attributes stay: "self.state"."""
    return name.partition("[")[0]


def passes_of(call: Call, name: str) -> ast.AST | None:
    """Return an earlier call of backward() on a name in the same function."""
    if call.scope is None or call.node is None:
        return None
    for node in walk(call.scope):
        if called(node) == "backward" and isinstance(node, ast.Call) and node is not call.node:
            on_it = isinstance(node.func, ast.Attribute) and written(node.func.value) == name
            if on_it and node.lineno <= call.line and "retain_graph=True" not in ast.unparse(node):
                return node
    return None


def one_after_the_other(call: Call, first: ast.AST, name: str) -> bool:
    """Return whether both passes stand in one block with nothing between that gives the name another value."""
    source: Source | None = call.source
    if source is None or call.statement is None:
        return False
    one = source.statement(first)
    if one is None or source.block(one) != source.block(call.statement):
        return False
    return not any(one.lineno <= it.lineno <= call.statement.lineno for it in assigned(call, name))
