"""Where a script makes what goes wrong later: the update of an average, and the weights of a loss."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import arguments, functions_named, own
from course_utils.audit.source import around, function_around, tree_of
from course_utils.explain.source import applied_to, called, names_of

_AVERAGES = re.compile(r"\b(mul_|lerp_|copy_|add_|set_)\(|\.data = |= .*(decay|beta|tau|alpha|momentum)")
_MIXES = re.compile(r"lerp_?\(|mul_\(.*add_\(|(copy_\(|data = |\] = ).*\*.*\+.*\*", re.S)
_LOSSES = re.compile(r"^(CrossEntropyLoss|NLLLoss|BCEWithLogitsLoss|cross_entropy|nll_loss|binary_cross_entropy\w*)$")
_KEYS = frozenset({"weight", "pos_weight"})
_COUNTS = re.compile(r"count|bincount|freq|hist|support|unique|sum\(|mean\(|len\(|value_counts|prior|/")
_DEEP = 5

Scopes = list[tuple[str, ast.AST]]


def average_updates(scopes: Scopes) -> list[Spot]:
    """Return the loops that mix the parameters of one model into those of another, pair by pair."""
    found: dict[Spot, None] = {}
    for file, scope in scopes:
        for node in own(scope):
            if isinstance(node, ast.For) and _is_average(node):
                found[Spot(file, node.lineno)] = None
    return list(found)


def _is_average(loop: ast.For) -> bool:
    """Say whether a loop goes through two models' parameters at once and writes to one, or mixes those of one."""
    text = ast.unparse(loop.iter)
    models = re.findall(r"([\w.]+)\.(?:named_)?parameters\(\)", text)
    body = "\n".join(map(ast.unparse, loop.body))
    if len(set(models)) >= 2:
        return _AVERAGES.search(body) is not None
    return "parameters()" in text and _MIXES.search(body) is not None


def weights_made(scopes: Scopes, spot: Spot) -> Spot | None:
    """Return the line that computes the weights that losses are given; None where it may be one of several.

    Of several it is the one that stands in the functions around the line at which the loss is computed.
    """
    found: dict[Spot, Spot] = {}  # with the call that is given them
    for file, scope in scopes:
        for node in own(scope):
            for call in _calls(node):
                given = next((it.value for it in call.keywords if it.arg in _KEYS), None)
                if given is None and called(call) in ("CrossEntropyLoss", "NLLLoss") and call.args:
                    given = call.args[0]
                made = _made(Spot(file, call.lineno), given, _DEEP) if given is not None else None
                if made is not None:
                    found[made] = Spot(file, call.lineno)
    if len(found) > 1:
        near = [it for it in around(spot) if isinstance(it, ast.FunctionDef)]
        found = {it: at for it, at in found.items() if at.file == spot.file and function_around(at) in near}
    return next(iter(found)) if len(found) == 1 else None


def _calls(node: ast.stmt) -> Iterator[ast.Call]:
    """Yield the calls of losses in a statement's own expressions, and not in the statements that it holds."""
    for part in ast.iter_child_nodes(node):
        for it in ast.walk(part) if isinstance(part, ast.expr) else ():
            if isinstance(it, ast.Call) and _LOSSES.match(called(it)):
                yield it


def _made(spot: Spot, value: ast.expr, deep: int) -> Spot | None:
    """Return the line at which weights are computed of counts, going back through names, casts and parameters."""
    if not deep:
        return None
    if isinstance(value, ast.Name | ast.Attribute):
        return _bound(spot, ast.unparse(value), deep - 1)
    if isinstance(value, ast.Constant):
        return None
    if isinstance(value, ast.Call) and not any(isinstance(it, ast.BinOp) for it in ast.walk(value)):
        for function in functions_named(spot.file, called(value)):
            returned = [it for it in ast.walk(function) if isinstance(it, ast.Return) and it.value is not None]
            if len(returned) == 1:
                return _made(Spot(spot.file, returned[0].lineno), returned[0].value, deep - 1)  # type: ignore[arg-type]
        inner = applied_to(value, ("torch", "np", "numpy"))
        if isinstance(inner, ast.Name | ast.Attribute | ast.Call) and not _COUNTS.search(ast.unparse(value.func)):
            return _made(spot, inner, deep)
    return Spot(spot.file, value.lineno) if _COUNTS.search(ast.unparse(value)) or names_of(value) else None


def _bound(spot: Spot, name: str, deep: int) -> Spot | None:
    """Return where a name is bound to the weights: the last line before, in the function, the file or by a caller."""
    scope = function_around(spot)
    tree = tree_of(spot.file)
    for where in (scope, tree):
        lines = [
            node
            for node in (ast.walk(where) if where is not None else ())
            if isinstance(node, ast.Assign) and any(ast.unparse(to) == name for to in node.targets)
        ]
        before = [it for it in lines if it.lineno < spot.line] or lines
        if before:
            last = max(before, key=lambda it: it.lineno)
            return _made(Spot(spot.file, last.lineno), last.value, deep)
        if isinstance(scope, ast.FunctionDef) and name in {it.arg for it in scope.args.args}:
            given = [
                (call, value)
                for call in (ast.walk(tree) if tree is not None else ())
                if isinstance(call, ast.Call) and called(call) in (scope.name, _class_of(tree, scope))
                for to, value in arguments(scope, call)
                if to == name
            ]
            return _made(Spot(spot.file, given[0][0].lineno), given[0][1], deep) if len(given) == 1 else None
    return None


def _class_of(tree: ast.AST | None, function: ast.FunctionDef) -> str:
    """Return the name of the class whose `__init__` a function is."""
    kinds = [it for it in (ast.walk(tree) if tree is not None else ()) if isinstance(it, ast.ClassDef)]
    return next((it.name for it in kinds if function.name == "__init__" and function in it.body), "-")
