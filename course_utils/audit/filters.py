"""Loops over a model's names that freeze what a condition takes, and which names it takes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import own
from course_utils.audit.source import tree_of
from course_utils.explain.source import names_of

_METHODS = ("named_parameters", "named_modules", "named_children")
_TESTS = frozenset({"startswith", "endswith", "split", "lower", "find", "rpartition", "partition", "count"})
_BUILTINS = {"any": any, "all": all, "len": len}
_ALLOWED = (
    *(ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Constant, ast.Name, ast.Load, ast.And, ast.Or, ast.Not, ast.In),
    *(ast.NotIn, ast.Eq, ast.NotEq, ast.Lt, ast.Gt, ast.LtE, ast.GtE, ast.Tuple, ast.List, ast.Set, ast.Call),
    *(ast.Attribute, ast.Subscript, ast.GeneratorExp, ast.ListComp, ast.comprehension, ast.Store, ast.USub, ast.Slice),
)


@dataclass(frozen=True)
class Filter:
    """One condition on a name, under which a loop freezes. `owner` is whose names: "model.encoder"."""

    spot: Spot
    owner: str
    method: str
    variable: str
    text: str
    known: tuple[tuple[str, Any], ...]

    def takes(self, name: str) -> bool:
        """Say whether the condition holds for a name; True where it cannot be told."""
        code = compile(ast.parse(self.text, mode="eval"), "<condition>", "eval")
        names = {"__builtins__": _BUILTINS, **dict(self.known), self.variable: name}
        try:
            return bool(eval(code, names))
        except Exception:
            return True


@lru_cache(maxsize=128)
def filters(file: str, scope: ast.AST) -> tuple[Filter, ...]:
    """Return the conditions in a function that are about names alone: of texts, and of lists that are assigned once."""
    tree = tree_of(file)
    constants = _constants(tree) if tree is not None else {}
    return tuple(found for node in own(scope) if isinstance(node, ast.For) for found in _filters(node, file, constants))


def _filters(loop: ast.For, file: str, constants: dict[str, Any]) -> Iterator[Filter]:
    call, target = loop.iter, loop.target
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.args or call.keywords:
        return
    if call.func.attr not in _METHODS or not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return
    variable = ast.unparse(target.elts[0])
    for node in loop.body:
        if not isinstance(node, ast.If) or node.orelse or not _freezes(node):
            continue
        used = names_of(node.test)
        bound = {ast.unparse(part.target) for part in ast.walk(node.test) if isinstance(part, ast.comprehension)}
        free = used - bound - {variable, *_BUILTINS}
        if variable in used and _is_plain(node.test) and free <= constants.keys():
            known = tuple((name, constants[name]) for name in sorted(free))
            text = ast.unparse(node.test)
            yield Filter(Spot(file, node.lineno), ast.unparse(call.func.value), call.func.attr, variable, text, known)


def _freezes(node: ast.If) -> bool:
    """Say whether a block sets requires_grad to False."""
    for part in ast.walk(node):
        if isinstance(part, ast.Assign) and any(
            isinstance(it, ast.Attribute) and it.attr == "requires_grad" for it in part.targets
        ):
            return isinstance(part.value, ast.Constant) and part.value.value is False
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "requires_grad_":
            return any(isinstance(it, ast.Constant) and it.value is False for it in part.args)
    return False


def _is_plain(test: ast.expr) -> bool:
    """Say whether a condition only compares texts, so that it may be asked again."""
    for part in ast.walk(test):
        if not isinstance(part, _ALLOWED):
            return False
        if isinstance(part, ast.Attribute) and part.attr not in _TESTS:
            return False
        if isinstance(part, ast.comprehension) and not isinstance(part.target, ast.Name):
            return False
        if isinstance(part, ast.Call):
            function = part.func
            named = isinstance(function, ast.Name) and function.id in _BUILTINS
            if not named and not isinstance(function, ast.Attribute):
                return False
    return True


def _constants(tree: ast.Module) -> dict[str, Any]:
    """Return the names of a file that are assigned once, and stand for a text or for a list of texts."""
    found: dict[str, list[Any]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(_literal(node.value))
        elif isinstance(node, ast.arg):
            found.setdefault(node.arg, []).append(None)
    return {name: values[0] for name, values in found.items() if len(values) == 1 and values[0] is not None}


def _literal(node: ast.expr) -> Any:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    texts = isinstance(value, list | tuple | set) and all(isinstance(it, str) for it in value)
    return value if texts or isinstance(value, str) else None
