"""Images that are turned by chance, as the source of a data set or of a loop says, and what is turned with them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from course_utils.audit.erasing import by_chance, has_chance
from course_utils.audit.inplace import methods_called
from course_utils.audit.lines import Spot, is_learners
from course_utils.audit.mentions import arguments, functions_at, functions_named, functions_of
from course_utils.explain.source import applied_to, called, names_of

TURNS = re.compile(r"^((random_?)?[hv]?_?flip(lr|ud|_\w+)?|rot90|rotate|roll|\w*mirror\w*)$", re.I)
_LIBRARIES = frozenset({"torch", "np", "numpy", "F", "TF", "T", "random", "self", "cls", "transforms", "functional"})
_DEEP = 2

_Function = ast.FunctionDef | ast.Lambda


class Turn(NamedTuple):
    """A line that turns something, the names of what it turns, where that is written here, and by chance or not."""

    spot: Spot
    names: frozenset[str]
    at: int  # the line of the scope that it was found from
    chance: bool


def unmatched(scope: ast.AST, file: str, known: Mapping[str, Any]) -> Turn | None:
    """Return the first turn by chance in a scope.

    None where two different things are turned: an image and its mask, or a prediction that is turned back.
    """
    found = list(_turns(scope, file, known, _DEEP))
    first = next((it for it in found if it.chance), None)
    if first is None or not first.names or any(it.names != first.names for it in found):
        return None
    return first


def turns(scope: ast.AST, file: str, known: Mapping[str, Any]) -> Iterator[Turn]:
    """Yield what a scope turns, also within the functions that it calls."""
    return _turns(scope, file, known, _DEEP - 1)


def is_left(node: ast.expr, scope: ast.AST, turn: Turn) -> bool:
    """Say whether an expression holds nothing that is turned, or was bound or written after the turn."""
    names = names_of(node) - _LIBRARIES
    return not names & (turn.names | _written_after(scope, turn.at))


def _written_after(scope: ast.AST, after: int) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign | ast.AugAssign) and (node.end_lineno or node.lineno) >= after:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for to in targets:
                found |= names_of(to)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
            found |= names_of(node.func.value) if node.lineno >= after else set()
    return found


def _turns(scope: ast.AST, file: str, known: Mapping[str, Any], deep: int) -> Iterator[Turn]:
    chance = by_chance(list(ast.walk(scope)))
    body = [scope.body] if isinstance(scope, ast.Lambda) else scope.body  # type: ignore[attr-defined]
    for node, lucky, at in _with_chance(body, chance, None):
        if isinstance(node, ast.Subscript) and is_backwards(node.slice):
            yield Turn(Spot(file, node.lineno), _roots(node.value), at or node.lineno, lucky)
        if not isinstance(node, ast.Call):
            continue
        if TURNS.match(called(node)) and not functions_of(file).get(called(node)):
            # Of how far something is turned, nothing is turned itself.
            given = applied_to(node, _LIBRARIES)
            if given is None:
                continue
            lucky = lucky or any(has_chance(it, chance) for it in (*node.args, *(it.value for it in node.keywords)))
            yield Turn(Spot(file, node.lineno), _roots(given), at or node.lineno, lucky)
        elif deep:
            yield from _within(node, file, known, (lucky, at or node.lineno), deep)


def _roots(node: ast.expr) -> frozenset[str]:
    """Return the names of what an expression is made of, without those of its indices."""
    indices = {name for it in ast.walk(node) if isinstance(it, ast.Subscript) for name in names_of(it.slice)}
    return frozenset(names_of(node) - _LIBRARIES - indices)


def _within(call: ast.Call, file: str, known: Mapping[str, Any], place: tuple[bool, int], deep: int) -> Iterator[Turn]:
    """Yield what a function turns that is called here, by the names that it is given."""
    for function, source in callees(call, file, known):
        given = dict(arguments(function, call))
        for turn in _turns(function, source, known, deep - 1):
            # What is turned may have been given another name in there: `out = image.clone()`.
            names = turn.names if turn.names & given.keys() else _given_as(function, turn.names)
            outside = {name for inner in names & given.keys() for name in names_of(given[inner])} - _LIBRARIES
            if outside:
                yield Turn(turn.spot, frozenset(outside), place[1], turn.chance or place[0])


def _given_as(function: _Function, names: frozenset[str]) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and any(names_of(to) & names for to in node.targets):
            found |= names_of(node.value)
    return frozenset(found)


def callees(call: ast.Call, file: str, known: Mapping[str, Any]) -> Iterator[tuple[_Function, str]]:
    """Yield the functions that a call runs, each with its file: of what is known under its name, or of the file."""
    value = known.get(ast.unparse(call.func))
    code = getattr(value, "__code__", None)
    if code is not None and is_learners(code.co_filename):
        for it in functions_at(code.co_filename, code.co_firstlineno):
            yield it, code.co_filename
    elif value is not None and code is None:
        yield from methods_called(value)
    elif value is None:
        for it in functions_named(file, called(call)):
            yield it, file


def is_backwards(index: ast.expr) -> bool:
    """Say whether an index goes through an axis from its end: `image[:, ::-1]`."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(isinstance(it, ast.Slice) and it.step is not None and ast.unparse(it.step) == "-1" for it in parts)


def _with_chance(
    nodes: list[Any], chance: set[str], at: int | None, lucky: bool = False
) -> Iterator[tuple[ast.AST, bool, int | None]]:
    """Yield the parts of statements, with whether chance decides over them, and the line where the statement begins."""
    for node in nodes:
        if isinstance(node, ast.If | ast.IfExp):
            inner = lucky or has_chance(node.test, chance)
            begin = at or (node.lineno if isinstance(node, ast.If) else None)
            body = node.body if isinstance(node.body, list) else [node.body]
            other = node.orelse if isinstance(node.orelse, list) else [node.orelse]
            yield from _with_chance([*body, *other], chance, begin, inner)
            continue
        chosen = isinstance(node, ast.Assign) and any(has_chance(it, chance) for it in _choices(node))
        yield node, lucky, at
        yield from _with_chance(list(ast.iter_child_nodes(node)), chance, at, lucky or chosen)


def _choices(line: ast.Assign) -> Iterator[ast.expr]:
    """Yield what a line chooses rows by: `image[flip] = ...`, or `torch.where(flip, ...)`."""
    for node in ast.walk(line):
        if isinstance(node, ast.Subscript):
            yield node.slice
        elif isinstance(node, ast.Call) and called(node) == "where" and node.args:
            yield node.args[0]
