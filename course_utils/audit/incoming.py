"""Which results of a custom backward are made from the gradient that comes in, as its source says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from course_utils.audit.classes import ZEROS, backward_of
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import names_read
from course_utils.audit.source import statement, taken_apart
from course_utils.explain.source import called, names_of

_CONSTANTS = re.compile(r"^(new_)?(ones|full)(_like)?$")


@dataclass(frozen=True)
class Unmoved:
    """One result of a backward that does not depend on what comes in: its place among the results, and its line."""

    at: int
    spot: Spot
    text: str


class _Unknown(Exception):
    """Something that may write anywhere was given the gradient."""


def unmoved(kind: type) -> tuple[Unmoved, ...]:
    """Return the results of a Function's backward that no line makes from the incoming gradient, others being so.

    Those that are zeros or None are left out: they go on without it on purpose.
    """
    place = backward_of(kind)
    scope = statement(place) if place is not None else None
    if place is None or not isinstance(scope, ast.FunctionDef):
        return ()
    given = {it.arg for it in (*scope.args.posonlyargs, *scope.args.args)[1:]}
    given |= {scope.args.vararg.arg} if scope.args.vararg else set()
    reading = _Reading(given)
    try:
        reading.block(scope.body, given, control=False)
    except _Unknown:
        return ()
    if not reading.returned or not given & names_read(scope):
        return ()
    found = None
    for parts in reading.returned:
        here = {it.at: it for it in _of_one(scope, place.file, parts)}
        found = here if found is None else {at: it for at, it in found.items() if at in here}
    return tuple((found or {}).values())


def _of_one(scope: ast.FunctionDef, file: str, parts: list[tuple[ast.expr, bool]]) -> Iterator[Unmoved]:
    """Yield what one `return` gives without the incoming gradient."""
    if any(isinstance(part, ast.Starred) for part, _ in parts):
        return
    given = {it.arg for it in scope.args.args[1:]}
    if len(parts) > 1 and any(isinstance(part, ast.Name) and part.id in given for part, _ in parts):
        return  # what is handed on as it came is often a value to which a loss of the Function's own is tied
    for at, (part, made) in enumerate(parts):
        values = _values(scope, part)
        if made or isinstance(part, ast.Constant) or not values or any(map(_is_nothing, values)):
            continue
        line = values[0].lineno if len(values) == 1 else part.lineno
        yield Unmoved(at, Spot(file, line), ast.unparse(part))


def _values(scope: ast.FunctionDef, part: ast.expr) -> list[ast.expr]:
    """Return what a result is: the expression itself, or all that its name is assigned."""
    if not isinstance(part, ast.Name):
        return [part]
    return [
        node.value
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign | ast.AugAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if any(isinstance(it, ast.Name) and it.id == part.id for it in taken_apart(target))
    ]


def _is_nothing(value: ast.expr) -> bool:
    """Say whether a result is a constant, as of a loss that nothing comes after."""
    if isinstance(value, ast.Constant | ast.Tuple):
        return True
    if isinstance(value, ast.Call) and ZEROS.search(ast.unparse(value.func)):
        return True
    return any(isinstance(it, ast.Call) and _CONSTANTS.search(called(it)) for it in ast.walk(value))


class _Reading:
    """Goes through a function's lines in order, and keeps which names are made from what was given."""

    def __init__(self, given: set[str]) -> None:
        self.given = given
        self.returned: list[list[tuple[ast.expr, bool]]] = []

    def block(self, lines: list[ast.stmt], made: set[str], *, control: bool) -> set[str]:
        """Return the names that are made from what was given after some lines."""
        for line in lines:
            made = self._line(line, made, control)
        return made

    def _line(self, line: ast.stmt, made: set[str], control: bool) -> set[str]:
        if isinstance(line, ast.Assign | ast.AnnAssign | ast.AugAssign):
            return self._assigned(line, made, control)
        if isinstance(line, ast.Return):
            if line.value is not None and not isinstance(line.value, ast.Constant):
                parts = line.value.elts if isinstance(line.value, ast.Tuple) else [line.value]
                self.returned.append([(part, control or bool(names_read(part) & made)) for part in parts])
            return made
        if isinstance(line, ast.If):
            under = control or bool(names_read(line.test) & made)
            return self.block(line.body, made, control=under) | self.block(line.orelse, made, control=under)
        if isinstance(line, ast.For | ast.While):
            under = control
            if isinstance(line, ast.For) and names_read(line.iter) & made:
                made = made | names_of(line.target)
            elif isinstance(line, ast.While):
                under = control or bool(names_read(line.test) & made)
            for _ in range(2):
                made = made | self.block(line.body, made, control=under)
            return self.block(line.orelse, made, control=under)
        if isinstance(line, ast.With):
            return self.block(line.body, made, control=control)
        if isinstance(line, ast.Try | ast.Match):
            raise _Unknown
        return self._other(line, made)

    def _assigned(self, line: ast.Assign | ast.AnnAssign | ast.AugAssign, made: set[str], control: bool) -> set[str]:
        targets = line.targets if isinstance(line, ast.Assign) else [line.target]
        depends = control or (line.value is not None and bool(names_read(line.value) & made))
        for target in targets:
            for part in taken_apart(target):
                root = _root(part)
                if root is None:
                    raise _Unknown
                plain = isinstance(part, ast.Name) and not isinstance(line, ast.AugAssign)
                if depends or bool(names_read(part) & made):
                    made = made | {root}
                elif plain:
                    made = made - {root}
        return made

    def _other(self, line: ast.stmt, made: set[str]) -> set[str]:
        """A call for what it does: x.mul_(grad) writes into x; of others nobody knows what they write into."""
        if isinstance(line, ast.Pass | ast.Assert | ast.Raise | ast.Import | ast.ImportFrom) or not (
            names_read(line) & made
        ):
            return made
        call = line.value if isinstance(line, ast.Expr) else None
        root = _root(call.func) if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
        if root is None or not called(call).endswith("_"):
            raise _Unknown
        return made | {root}


def _root(node: ast.expr) -> str | None:
    """Return the name that an attribute or an item is of."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None
