"""Writes in functions that have returned: read off the learner's files, since no frame of theirs is left."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from course_utils.explain.explanation import Place
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
