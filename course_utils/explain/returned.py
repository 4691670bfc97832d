"""Writes in functions that have returned: read off the learner's files, since no frame of theirs is left."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from course_utils.explain.aliases import alias, cut
from course_utils.explain.explanation import Place
from course_utils.explain.lines import defined, has_keyword, lines, reached
from course_utils.explain.loops import callee, methods_of
from course_utils.explain.naming import argument, modules
from course_utils.explain.situation import Situation
from course_utils.explain.source import FUNCTIONS, Source, called, names_of, walk, written
from course_utils.explain.writers import base_of, own_parts, runs, writes_into

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Returned:
    """A statement in a function that is over, which writes in place, and the one before it that ran the operation."""

    name: str
    function: str
    statement: ast.stmt
    where: tuple[Place, ...]
    whole: str = ""  # of what it is a part, where it is one


def written_after(s: Situation, operation: str) -> list[Returned]:
    """Return the writes in functions that have returned into a name that an operation made or read just before."""
    found = []
    for source, scope in _functions(s):
        statements = list(_statements(scope))
        for at, statement in enumerate(statements):
            for name in _targets(statement):
                loop = source.loop(statement)
                again = [it for it in statements[at:] if loop is not None and loop in source.around(it)]
                before = [it for it in (*again, *statements[:at]) if runs(it, operation, [name])]
                if before:
                    places = (source.place("saved here", before[-1]), source.place("overwritten here", statement))
                    found.append(Returned(name, scope.name, statement, places))
    return found


def written_by_class(s: Situation, operation: str, names: list[str]) -> list[Returned]:
    """Return the writes of a class into what its object keeps under one of the names: "net.norm.scale"."""
    found: dict[int, Returned] = {}
    for call in s.calls:
        for name in names:
            attribute = f"self.{name.rpartition('.')[2]}"
            for source, scope in methods_of(call, name) if "." in name and "[" not in attribute else ():
                statements = list(_statements(scope))
                for it in statements:
                    if attribute in _targets(it):
                        saved = [other for other in statements if runs(other, operation, [attribute])]
                        places = (*(source.place("saved here", other) for other in saved[-1:]),)
                        wrote = source.place("overwritten here", it)
                        found[id(it)] = Returned(attribute, scope.name, it, (*places, wrote))
    return list(found.values())


def written_by_helpers(s: Situation, operation: str, names: list[str]) -> list[Returned]:
    """Return the writes of functions into an argument that an operation had made or read where they were called."""
    found: dict[int, Returned] = {}
    functions = list(_functions(s))
    for source, scope in functions:
        for statement in _statements(scope):
            for name in _targets(statement):
                for own, caller, node, given in _given(s, functions, scope, alias(scope, name)):
                    saved = _saved_before(own, caller, node, given, operation, functions)
                    if saved is None and not (given in names and any(call.scope is caller for call in s.calls)):
                        continue
                    places = (*([saved] if saved else []), source.place("overwritten here", statement))
                    whole = "" if cut(scope, name) or alias(scope, name) == name else alias(scope, name)
                    found.setdefault(id(statement), Returned(name, scope.name, statement, places, whole))
    return list(found.values())


def _given(
    s: Situation, functions: list[tuple[Source, _Function]], scope: _Function, name: str
) -> Iterator[tuple[Source, ast.AST, ast.Call, str]]:
    """Yield the calls of a function, with where they stand and what they give it under a name."""
    parameters = _parameters(scope)
    if name not in parameters:
        return
    working = [(call.source, call.scope) for call in s.calls if call.source is not None and call.scope is not None]
    for source, caller in (*working, *functions):
        for node in walk(caller):
            if isinstance(node, ast.Call) and called(node) == scope.name:
                given = base_of(argument(node, parameters.index(name), name))
                if given:
                    yield source, caller, node, given


def _saved_before(
    source: Source, caller: ast.AST, node: ast.Call, given: str, op: str, functions: list[tuple[Source, _Function]]
) -> Place | None:
    """Return the line before a call that ran an operation on what it gives, itself or in a function it calls."""
    for statement in _statements(caller):
        if statement.lineno > node.lineno or statement is source.statement(node):
            continue
        if runs(statement, op, [given]):
            return source.place("saved here", statement)
        for part in own_parts(statement):
            for own, scope in functions if isinstance(part, ast.Call) else ():
                if not isinstance(part, ast.Call) or called(part) != scope.name:
                    continue
                for position, parameter in enumerate(_parameters(scope)):
                    if base_of(argument(part, position, parameter)) != given:
                        continue
                    for it in _statements(scope):
                        if runs(it, op, [parameter]):
                            return own.place("saved here", it)
    return None


def written_somewhere(s: Situation) -> list[Place]:
    """Return the lines in functions that are over which write into something in place."""
    return [
        source.place("writes in place", it)
        for source, scope in _functions(s)
        for it in _statements(scope)
        if any(_is_tensor_write(it, name) for name in _targets(it))
    ]


def _is_tensor_write(statement: ast.stmt, name: str) -> bool:
    """Return whether a statement writes as tensors are written into: not a count or an entry of a dict."""
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.target, ast.Subscript) or not isinstance(statement.value, ast.Constant)
    return True


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
                names = names_of(loop.target)
                for inner in ast.walk(loop):
                    if isinstance(inner, ast.stmt) and names & set(_targets(inner)) and inner is not loop:
                        place = it.source.place("writes into parameters", inner)
                        found.append(Returned("", getattr(it.scope, "name", "a function"), inner, (place,)))
    return found


def written_in_hooks(s: Situation) -> list[Returned]:
    """Return the writes of forward hooks into what their module returned."""
    found: dict[int, Returned] = {}
    for call in s.calls:
        for _, module in modules(call):
            for hook in module._forward_hooks.values():
                code = getattr(hook, "__code__", None)
                source, scope = defined(s, code) or (None, None)
                if source is None or not isinstance(scope, FUNCTIONS) or len(scope.args.args) < 3:
                    continue
                output = scope.args.args[2].arg
                for it in _statements(scope):
                    if output in _targets(it):
                        place = source.place("overwritten here", it)
                        found[id(it)] = Returned(output, scope.name, it, (place,))
    return list(found.values())


def in_place_layers(s: Situation) -> list[Place]:
    """Return the lines of the learner's files that make a layer which writes in place."""
    return lines(s, "writes in place", lambda it: has_keyword(it, "inplace"))


def _functions(s: Situation) -> Iterator[tuple[Source, _Function]]:
    """Yield the learner's functions that are not at work, and that those at work use."""
    working = [call.scope for call in s.calls]
    for source, node in reached(s):
        if isinstance(node, FUNCTIONS) and node not in working:
            yield source, node


def _statements(scope: ast.AST) -> Iterator[ast.stmt]:
    return (it for it in walk(scope) if isinstance(it, ast.stmt))


def _parameters(scope: _Function) -> list[str]:
    return [it.arg for it in scope.args.args if it.arg != "self"]


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


def shown(it: Returned) -> str:
    """Return the write as code, or its line where that is too long."""
    return written(it.statement, 60) or it.where[-1].text
