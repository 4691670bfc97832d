"""Parameters that a forward, or a step of the training, makes anew: the optimizer holds the ones that were there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import functions_named
from course_utils.audit.source import around
from course_utils.explain.source import called

_LOOPS = ast.For | ast.While
_HELD_ANEW = re.compile(
    r"\b(Adam\w*|NAdam|RAdam|SGD|RMSprop|LBFGS|Adagrad|Adadelta|Adamax|ASGD)\(|add_param_group|\['params'\]|"
    r"(configure|make|build|new|get|reset|create)\w*_?opt\w*\(|manual_seed|deepcopy\("
)
_FUNCTIONS = 40


class Renewal(NamedTuple):
    """A line that puts a new parameter in the place of one, with the text of the place."""

    spot: Spot
    place: str


def renewals(scopes: list[tuple[str, ast.AST]]) -> Iterator[Renewal]:
    """Yield the lines that make a parameter anew in each forward or step, whatever condition the training is in."""
    told: set[Spot] = set()
    for file, region, everywhere in _regions(scopes):
        for node in _own(region):
            place = _place(node) if isinstance(node, ast.stmt) else ""
            spot = Spot(file, node.lineno) if place else None  # type: ignore[attr-defined]
            if spot is not None and spot not in told and not _is_conditional(spot, region, everywhere):
                told.add(spot)
                yield Renewal(spot, place)


def _own(region: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a region without those of functions and classes that are written in it."""
    for node in ast.iter_child_nodes(region):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            yield node
            yield from _own(node)


def _regions(scopes: list[tuple[str, ast.AST]]) -> Iterator[tuple[str, ast.AST, bool]]:
    """Yield what runs in each step: forwards, loops around a pass, and the functions that these call.

    The flag says whether the whole of a function does.
    """
    queue: list[tuple[str, ast.AST, bool]] = []
    for file, scope in scopes:
        if isinstance(scope, ast.FunctionDef) and scope.name == "forward":
            queue.append((file, scope, True))
        loops = [it for it in _own(scope) if isinstance(it, _LOOPS)]
        queue += [(file, it, False) for it in loops if _passes(file, it, 3) and not _takes_anew(file, it, 2)]
    for file, region, _ in queue:
        yield file, region, isinstance(region, ast.FunctionDef)
        for name in sorted({called(it) for it in _own(region)} - {"", "step", "backward", "__init__"}):
            for function in functions_named(file, name):
                if len(queue) < _FUNCTIONS and all(function is not it for _, it, _ in queue):
                    queue.append((file, function, True))


def _passes(file: str, region: ast.AST, deep: int) -> bool:
    """Say whether a region calls `backward`, itself or in the functions that it calls."""
    names = {called(it) for it in _own(region)} - {""}
    if "backward" in names:
        return True
    return deep > 0 and any(_passes(file, it, deep - 1) for name in names for it in functions_named(file, name))


def _takes_anew(file: str, region: ast.AST, deep: int) -> bool:
    """Say whether a region makes an optimizer, or gives one other parameters, so that it may hold the new ones."""
    if _HELD_ANEW.search(ast.unparse(region)):
        return True
    names = {called(it) for it in _own(region)} - {""}
    return deep > 0 and any(_takes_anew(file, it, deep - 1) for name in names for it in functions_named(file, name))


def _place(node: ast.stmt) -> str:
    """Return the text of what a statement puts a new parameter into, or nothing."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and _makes(node.value):
        target = node.targets[0]
        if isinstance(target, ast.Attribute):
            return ast.unparse(target)
        if isinstance(target, ast.Subscript) and "_parameters" in ast.unparse(target.value):
            return ast.unparse(target)
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call):
        named = called(call) in ("setattr", "register_parameter")
        if named and call.args and _makes(call.args[-1]):
            return ast.unparse(call.args[-2]).strip("'\"") if len(call.args) > 1 else ""
    return ""


def _makes(value: ast.expr) -> bool:
    """Say whether an expression is a new parameter that is to be trained."""
    if not isinstance(value, ast.Call) or called(value) != "Parameter":
        return False
    fixed = [it.value for it in value.keywords if it.arg == "requires_grad"]
    return not any(isinstance(it, ast.Constant) and it.value is False for it in (*fixed, *value.args[1:]))


def _is_conditional(spot: Spot, region: ast.AST, everywhere: bool) -> bool:
    """Say whether a line runs only in some cases, as for a first call; whether it is in training is no such case."""
    nodes = around(spot)
    inside = nodes[nodes.index(region) + 1 :] if region in nodes else nodes
    tests = [it.test for it in inside if isinstance(it, ast.If)]
    if any(ast.unparse(it) != "self.training" for it in tests) or any(isinstance(it, ast.Try) for it in inside):
        return True
    # What returns before it may have been for all but the first call.
    body = region.body if everywhere and isinstance(region, ast.FunctionDef) else []
    early = [it for it in body if isinstance(it, ast.If) and it.lineno < spot.line]
    return any(isinstance(part, ast.Return) for it in early for part in ast.walk(it))
