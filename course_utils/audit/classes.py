"""What the source of a learner's class says, also after its script has ended."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from types import FunctionType

from torch import nn

from course_utils.audit.lines import Spot, is_learners
from course_utils.audit.source import around, calls, nearest, statement, taken_apart

ZEROS = re.compile(r"\bzeros(_like)?$|new_zeros$")


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
                if any(ast.unparse(it) == name for it in taken_apart(target)):
                    yield Spot(file, part.lineno), part.value


def made_near(spot: Spot, pattern: str) -> Spot:
    """Return the line of a call that matches a pattern: in the class around a line, else near it, else that line."""
    inside = made_in_class(spot, pattern)
    return inside[0] if inside else nearest(calls(spot.file, pattern), spot) or spot


def made_in_class(spot: Spot, pattern: str) -> list[Spot]:
    """Return the lines of the calls that match a pattern in the class around a line."""
    kind = next((node for node in reversed(around(spot)) if isinstance(node, ast.ClassDef)), None)
    found = calls(spot.file, pattern) if kind is not None else []
    return [it for it in found if kind is not None and kind.lineno <= it.line <= (kind.end_lineno or it.line)]


def class_source(kind: type) -> tuple[ast.ClassDef | None, str]:
    """Return where a class is defined, and its file, as its methods tell: a script that ended has no module."""
    own = (getattr(value, "__func__", value) for value in vars(kind).values())
    codes = [function.__code__ for function in own if isinstance(function, FunctionType)]
    for code in codes:
        for node in around(Spot(code.co_filename, code.co_firstlineno)):
            if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
                return node, code.co_filename
    return None, ""


def parts_of_ones_own(module: nn.Module) -> Iterator[tuple[nn.Module, ast.ClassDef, str]]:
    """Yield the parts of a model that are of a learner's classes, each with its class and the file of that."""
    for part in module.modules():
        if not type(part).__module__.startswith("torch."):
            node, file = class_source(type(part))
            if node is not None:
                yield part, node, file


def backward_of(kind: type) -> Spot | None:
    """Return where a learner's Function defines its backward; None for one that is not a learner's."""
    code = getattr(inspect.unwrap(kind.backward), "__code__", None)  # type: ignore[attr-defined]
    if code is None or not is_learners(code.co_filename):
        return None
    found = statement(Spot(code.co_filename, code.co_firstlineno))
    return Spot(code.co_filename, found.lineno if found is not None else code.co_firstlineno)


def ignores_incoming(kind: type) -> Spot | None:
    """Return the first `return` of a Function's backward whose source never reads what comes in; else None.

    One that gives zeros or None goes on without the incoming gradient on purpose.
    """
    place = backward_of(kind)
    scope = statement(place) if place is not None else None
    if place is None or not isinstance(scope, ast.FunctionDef):
        return None
    given = [it.arg for it in (*scope.args.posonlyargs, *scope.args.args)][1:]
    names = {*given, scope.args.vararg.arg if scope.args.vararg else "", "locals"}
    read = {part.id for part in ast.walk(scope) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
    returned = [node for node in ast.walk(scope) if isinstance(node, ast.Return)]
    if names & read or not returned or all(map(_is_none, returned)) or gives_zeros(kind):
        return None
    return Spot(place.file, next(node for node in returned if not _is_none(node)).lineno)


def gives_none(kind: type) -> Spot | None:
    """Return the line on which a Function's backward returns None for one of several inputs."""
    place = backward_of(kind)
    scope = statement(place) if place is not None else None
    for node in ast.walk(scope) if scope is not None else ():
        parts = node.value.elts if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) else []
        if place is not None and any(isinstance(part, ast.Constant) and part.value is None for part in parts):
            return Spot(place.file, node.value.lineno)  # type: ignore[attr-defined]
    return None


def gives_zeros(kind: type) -> Spot | None:
    """Return the line on which a Function's backward returns zeros and nothing else, if its source has one."""
    place = backward_of(kind)
    scope = statement(place) if place is not None else None
    returns = [node for node in ast.walk(scope) if isinstance(node, ast.Return)] if scope is not None else []
    values = [
        part
        for node in returns
        for part in (node.value.elts if isinstance(node.value, ast.Tuple) else [node.value])
        if part is not None and not (isinstance(part, ast.Constant) and part.value is None)
    ]
    zeros = values and all(isinstance(it, ast.Call) and ZEROS.search(ast.unparse(it.func)) for it in values)
    return Spot(place.file, returns[0].lineno) if zeros and place is not None else None


def _is_none(node: ast.Return) -> bool:
    parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    return all(part is None or (isinstance(part, ast.Constant) and part.value is None) for part in parts)
