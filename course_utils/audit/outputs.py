"""What is made of a model's outputs in a script's text: the call that gave them, and what was applied since."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from course_utils.audit.mentions import arguments, functions_of, parts
from course_utils.audit.source import taken_apart
from course_utils.explain.source import applied_to, called

_CASTS = frozenset(
    {
        *("cpu", "numpy", "detach", "float", "double", "to", "clone", "array", "asarray", "contiguous", "squeeze"),
        *("view", "reshape", "flatten", "ravel", "unsqueeze", "from_numpy", "tensor", "as_tensor", "view_as", "cat"),
    }
)
_SQUASHES = frozenset({"sigmoid", "sigmoid_", "softmax", "log_softmax", "exp", "tanh", "expit", "logsigmoid"})
_LIBRARIES = frozenset({"torch", "F", "np", "numpy", "nn", "functional", "special", "scipy", "torch.special"})
_DEEP, _BOUND = 6, 4
_SCOPES = 512
_JUDGES = re.compile(
    r"loss|crit|objective|metric|accuracy|score_fn|^(item|mean|sum|max|min|any|all|eq|norm|std|var|get|step|compute)$",
    re.I,
)


@dataclass(frozen=True, eq=False)
class Bound:
    """What a name stands for, and the names that count where that is written."""

    value: ast.expr
    values: Values


Values: TypeAlias = "dict[str, list[Bound | None]]"


class Output(NamedTuple):
    """A call of something that is no function of the file, and what squashes came after it."""

    made: ast.Call
    squashed: frozenset[str]


def values_in(scope: ast.AST, callers: Sequence[tuple[str, ast.AST]] = ()) -> Values:
    """Return what a function binds to each name; None for what is bound otherwise than by a plain assignment.

    A parameter stands for what the calls of the function in some other functions give.
    """
    values = dict(own_values(scope))
    for _, caller in callers if isinstance(scope, ast.FunctionDef) else ():
        for name, bound in _handed_in(scope, caller):  # type: ignore[arg-type]
            values[name] = [*values.get(name, ()), bound]
    return values


@lru_cache(maxsize=_SCOPES)
def own_values(scope: ast.AST) -> Values:
    values: Values = {}
    for node in parts(scope):
        if isinstance(node, ast.Call) and called(node) == "append" and isinstance(node.func, ast.Attribute):
            # A list that begins empty stands for what is put into it.
            for given in node.args[:1]:
                values.setdefault(ast.unparse(node.func.value), []).append(Bound(given, values))
        elif isinstance(node, ast.Assign) and not (isinstance(node.value, ast.List) and not node.value.elts):
            for target in node.targets:
                for part in taken_apart(target):
                    plain = isinstance(target, ast.Name)
                    values.setdefault(ast.unparse(part), []).append(Bound(node.value, values) if plain else None)
        elif isinstance(node, ast.For | ast.comprehension | ast.AugAssign | ast.NamedExpr):
            for part in taken_apart(node.target):
                values.setdefault(ast.unparse(part), []).append(None)
    return values


@lru_cache(maxsize=_SCOPES)
def calls_in(scope: ast.AST) -> dict[str, list[ast.Call]]:
    """Return the calls in a function, by the last name of what they call."""
    found: dict[str, list[ast.Call]] = {}
    for node in parts(scope):
        if isinstance(node, ast.Call):
            found.setdefault(called(node), []).append(node)
    return found


def _handed_in(function: ast.FunctionDef, caller: ast.AST) -> Iterator[tuple[str, Bound]]:
    """Yield the parameters of a function with what calls of it in another one give."""
    for call in calls_in(caller).get(function.name, ()):
        for name, given in arguments(function, call):
            yield name, Bound(given, own_values(caller))


def output_behind(node: ast.expr, values: Values, file: str, deep: int = _DEEP) -> Output | None:
    """Return the call that gave what an expression picks, casts or squashes; None where that is not the same always."""
    if not deep:
        return None
    if isinstance(node, ast.Subscript):
        return None if _picks_row(node.slice) else output_behind(node.value, values, file, deep)
    if isinstance(node, ast.Attribute) and node.attr in ("data", "T", "logits"):
        return output_behind(node.value, values, file, deep) if node.attr != "T" else None
    if isinstance(node, ast.ListComp):
        return output_behind(node.elt, values, file, deep)
    if isinstance(node, ast.Name):
        given = values.get(node.id, [])
        if not given or len(given) > _BOUND:
            return None
        return _agreed(
            node.lineno, [output_behind(it.value, it.values, file, deep - 1) if it else None for it in given]
        )
    if not isinstance(node, ast.Call):
        return None
    name = called(node)
    if name in _CASTS | _SQUASHES:
        inside = applied_to(node, _LIBRARIES)
        found = output_behind(inside, values, file, deep) if inside is not None else None
        squash = frozenset({name.rstrip("_")} if name in _SQUASHES else ())
        return Output(found.made, found.squashed | squash) if found is not None else None
    own = name in functions_of(file) or ast.unparse(node.func).partition(".")[0] in _LIBRARIES
    return None if (own and name != "forward") or not _may_be_model(node) else Output(node, frozenset())


def _may_be_model(call: ast.Call) -> bool:
    """Say whether a call can be one of a model: of a name, and of no reduction, loss or metric around another call."""
    if any(isinstance(it, ast.Call) for it in ast.walk(call.func)) or _JUDGES.search(called(call)):
        return False
    inner = [it for given in call.args for it in ast.walk(given) if isinstance(it, ast.Call)]
    return len(call.args) < 2 or not any(called(it) not in _CASTS for it in inner)


def _agreed(line: int, found: list[Output | None]) -> Output | None:
    """Return the last output before a line, where all were squashed alike."""
    known = [it for it in found if it is not None]
    if len(known) < len(found) or len({it.squashed for it in known}) > 1:
        return None
    return max(known, key=lambda it: (it.made.lineno <= line, it.made.lineno))


def _picks_row(index: ast.expr) -> bool:
    """Say whether an index takes one row, or rows, in place of a column."""
    return not isinstance(index, ast.Tuple) or not isinstance(index.elts[0], ast.Slice | ast.Constant)
