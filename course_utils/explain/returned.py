"""Writes in functions that have returned: read off the learner's files, since no frame of theirs is left."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from course_utils.explain.explanation import Place
from course_utils.explain.loops import callee
from course_utils.explain.naming import modules
from course_utils.explain.ownership import is_learners
from course_utils.explain.situation import Situation
from course_utils.explain.source import FUNCTIONS, Source, called, walk, written
from course_utils.explain.writers import base_of, own_parts, runs, writes_into


@dataclass(frozen=True)
class Returned:
    """A statement in a function that is over, which writes in place, and the one before it that ran the operation."""

    name: str
    function: str
    statement: ast.stmt
    where: tuple[Place, ...]


def written_after(s: Situation, operation: str) -> list[Returned]:
    """Return the writes in functions that have returned into a name that an operation made or read just before."""
    found = []
    for source, scope in _functions(s):
        statements = [it for it in walk(scope) if isinstance(it, ast.stmt)]
        for at, statement in enumerate(statements):
            for name in _targets(statement):
                before = [it for it in statements[:at] if runs(it, operation, [name])]
                if before:
                    places = (_place(source, "saved here", before[-1]), _place(source, "overwritten here", statement))
                    found.append(Returned(name, scope.name, statement, places))
    return found


def updated_in(s: Situation) -> list[Returned]:
    """Return the writes into the parameters of a model, in a loop over them, by functions that were called."""
    found = []
    for call in s.calls:
        for node in walk(call.scope) if call.scope is not None else ():
            it = (
                callee(call.value, call.sources, node)
                if isinstance(node, ast.Call) and node.lineno < call.line
                else None
            )
            for loop in walk(it.scope) if it is not None else ():
                if it is None or not isinstance(loop, ast.For) or "parameters()" not in ast.unparse(loop.iter):
                    continue
                names = {own.id for own in ast.walk(loop.target) if isinstance(own, ast.Name)}
                for inner in ast.walk(loop):
                    if isinstance(inner, ast.stmt) and names & set(_targets(inner)) and inner is not loop:
                        place = _place(it.source, "writes into parameters", inner)
                        found.append(Returned("", getattr(it.scope, "name", "a function"), inner, (place,)))
    return found


def written_in_hooks(s: Situation) -> list[Returned]:
    """Return the writes of forward hooks into what their module returned."""
    found: dict[int, Returned] = {}
    for call in s.calls:
        for _, module in modules(call):
            for hook in module._forward_hooks.values():
                code = getattr(hook, "__code__", None)
                source = (
                    call.sources.of(code.co_filename) if code is not None and is_learners(code.co_filename) else None
                )
                scope = source.function(code) if source is not None and code is not None else None
                if source is None or not isinstance(scope, FUNCTIONS) or len(scope.args.args) < 3:
                    continue
                output = scope.args.args[2].arg
                for it in walk(scope):
                    if isinstance(it, ast.stmt) and output in _targets(it):
                        place = _place(source, "overwritten here", it)
                        found[id(it)] = Returned(output, scope.name, it, (place,))
    return list(found.values())


def in_place_layers(s: Situation) -> list[Place]:
    """Return the lines of the learner's files that make a layer which writes in place."""
    sources = {id(call.source): call.source for call in s.calls if call.source is not None}
    return [
        Place("writes in place", source.file, node.lineno, source.text(node.lineno))
        for source in sources.values()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and any(it.arg == "inplace" and written(it.value) == "True" for it in node.keywords)
    ]


def _functions(s: Situation) -> Iterator[tuple[Source, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield the functions of the learner's files that are not at work."""
    working = [call.scope for call in s.calls]
    sources = {id(call.source): call.source for call in s.calls if call.source is not None}
    for call in s.calls:
        for cell in call.sources.cells_before(call.source) if call.source is not None else ():
            sources[id(cell)] = cell
    for source in sources.values():
        for node in ast.walk(source.tree):
            if isinstance(node, FUNCTIONS) and node not in working:
                yield source, node


def _targets(statement: ast.stmt) -> list[str]:
    """Return the names that a statement writes into in place."""
    names = []
    for part in own_parts(statement):
        candidates: list[ast.expr] = []
        if isinstance(part, ast.AugAssign):
            candidates = [part.target]
        elif isinstance(part, ast.Assign):
            candidates = list(part.targets)
        elif isinstance(part, ast.Call) and not called(part).startswith("__"):
            candidates = [*part.args[:1], *([part.func.value] if isinstance(part.func, ast.Attribute) else [])]
        names += [name for it in candidates if (name := base_of(it)) and writes_into(part, name)]
    return list(dict.fromkeys(names))


def _place(source: Source, role: str, statement: ast.stmt) -> Place:
    return Place(role, source.file, statement.lineno, source.text(statement.lineno))


def shown(it: Returned) -> str:
    """Return the write as code, or its line where that is too long."""
    return written(it.statement, 60) or it.where[-1].text
