"""What a loop or a function does again and again: which names it carries from one round to the next."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from course_utils.explain.explanation import Place
from course_utils.explain.naming import argument, assigned, receiver, targets
from course_utils.explain.ownership import is_learners
from course_utils.explain.reading import MISSING, is_a, value_of
from course_utils.explain.situation import Call
from course_utils.explain.source import Scope, Source, Sources, called, walk, written


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


def renewals(call: Call, name: str) -> list[ast.AST]:
    """Return what gives a name a new value, or a list a new element, in the loop that the failing line stands in."""
    if call.scope is None:
        return []
    found: list[ast.AST] = [it for it in assigned(call, name) if in_its_loop(call, it)]
    for node in walk(call.scope):
        if called(node) in ("append", "appendleft", "extend", "add") and written(receiver(node)) == name:
            found += [node] if in_its_loop(call, node) else []
    return found


def carriers(call: Call, name: str) -> list[Place]:
    """Return the lines by which a name goes from one round to the next, also where a class does it for its objects."""
    inside = renewals(call, name) or ([] if "." not in name else assigned(call, name))
    if inside:
        return [call.place("carried over here", it) for it in inside]
    return [source.place("carried over here", it) for source, it in _of_class(call, name)]


def _of_class(call: Call, name: str) -> list[tuple[Source, ast.stmt]]:
    """Return the statements in a learner's class that set the attribute which `model.state` names."""
    attribute = f"self.{name.rpartition('.')[2]}"
    return [
        (source, it)
        for source, scope in methods_of(call, name)
        for it in attribute_assigned(scope, attribute)
        if scope.name != "__init__"
    ]


def methods_of(call: Call, name: str) -> Iterator[tuple[Source, ast.FunctionDef]]:
    """Yield the methods, as they were written, of the learner's class whose object `model.state` is an attribute of."""
    owner = name.rpartition(".")[0]
    value = call.value(ast.parse(owner, mode="eval").body) if owner else MISSING
    for kind in type(value).__mro__ if value is not MISSING else ():
        for member in vars(kind).values():
            function = inspect.unwrap(member) if is_a(member, types.FunctionType) else None
            if function is None or not is_learners(function.__code__.co_filename):
                continue
            source = call.sources.of(function.__code__.co_filename, function.__globals__)
            scope = source.function(function.__code__) if source is not None else None
            if source is not None and isinstance(scope, ast.FunctionDef):
                yield source, scope


def kept_by_class(call: Call, name: str) -> tuple[Source, ast.stmt] | None:
    """Return where a class computes an attribute once and keeps it: in __init__, or where it finds none yet."""
    attribute = f"self.{name.rpartition('.')[2]}"
    sets = [(own, scope, it) for own, scope in methods_of(call, name) for it in attribute_assigned(scope, attribute)]
    real = [(own, it) for own, scope, it in sets if written(getattr(it, "value", None)) not in ("None", "{}", "[]")]
    sure = [it for own, scope, it in sets if scope.name == "__init__" or _asks_for(own, it, attribute)]
    return real[-1] if real and len(sure) == len(sets) else None


def _asks_for(source: Source, statement: ast.stmt, attribute: str) -> bool:
    """Return whether a statement runs only where an attribute has no value yet."""
    tests = [it.test for it in source.around(statement) if isinstance(it, ast.If)]
    short = attribute.removeprefix("self.")
    asked = (f"{attribute} is None", f"not hasattr(self, '{short}')", f"not {attribute}")
    return any(ast.unparse(it) in asked for it in tests)


def attribute_assigned(scope: ast.AST, attribute: str) -> list[ast.stmt]:
    """Return the statements of a method that set an attribute, "self.state"."""
    return [it for it in walk(scope) if isinstance(it, ast.stmt) and attribute in targets(it)]


@dataclass(frozen=True)
class Callee:
    """A learner's function that a call calls: as it was written, what its global names mean, what it was given."""

    source: Source
    scope: Scope
    names: dict[str, Any]
    given: dict[str, ast.expr]

    def value(self, node: ast.AST | None) -> Any:
        """Return what an expression of global names means there, or MISSING."""
        return value_of(node, lambda name: self.names.get(name, MISSING))


def callee(look_up: Callable[[ast.AST], Any], sources: Sources, node: ast.Call) -> Callee | None:
    """Return the learner's function, method or module's forward that a call calls; None for any other."""
    function = look_up(node.func)
    if is_a(function, torch.nn.Module):
        function = types.MethodType(type(function).forward, function)
    method = is_a(function, types.MethodType)
    function = function.__func__ if method else function
    function = inspect.unwrap(function) if is_a(function, types.FunctionType) else None
    if not is_a(function, types.FunctionType) or not is_learners(function.__code__.co_filename):
        return None
    source = sources.of(function.__code__.co_filename, function.__globals__)
    scope = source.function(function.__code__) if source is not None else None
    if source is None or scope is None:
        return None
    names = function.__code__.co_varnames[method : function.__code__.co_argcount]
    given = {name: it for at, name in enumerate(names) if (it := argument(node, at, name)) is not None}
    return Callee(source, scope, function.__globals__, given)


def in_its_loop(call: Call, statement: ast.AST) -> bool:
    """Return whether a statement is run again and again together with the failing line; a loop binds its own target."""
    source = call.source
    loop = source.loop(call.node) if source is not None and call.node is not None else None
    if loop is None:
        return "." in "".join(written(it) for it in getattr(statement, "targets", [])) and not call.is_module
    return source is not None and any(it is loop for it in [statement, *source.around(statement)])


def base(name: str) -> str:
    """Return "hidden" for "hidden[0]"; attributes stay: "self.state"."""
    return name.partition("[")[0]


def passes_of(call: Call, name: str) -> ast.AST | None:
    """Return an earlier pass over the graph of a name in the same function: by backward(), or by torch.autograd."""
    if call.scope is None or call.node is None:
        return None
    for node in walk(call.scope):
        if called(node) not in ("backward", "grad") or node is call.node or not isinstance(node, ast.Call):
            continue
        started = (receiver(node), argument(node, 0, "outputs"), argument(node, 0, "tensors"))
        keeps = any(f"{flag}=True" in ast.unparse(node) for flag in ("retain_graph", "create_graph"))
        if name in map(written, started) and node.lineno <= call.line and not keeps:
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
