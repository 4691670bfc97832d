"""Where code is read: its names, the statements that gave them their values, and whether anything is recorded there."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from course_utils.explain.naming import argument, receiver, targets
from course_utils.explain.reading import MISSING, is_a, value_of
from course_utils.explain.situation import Call
from course_utils.explain.source import FUNCTIONS, Scope, Source, called, walk, written


@dataclass(eq=False)
class Setting:
    """Where code is read: a function at work, with its names, or one that was called and is gone."""

    source: Source
    scope: Scope
    call: Call | None
    bound: dict[str, Any]  # names known without a frame: `self`, and what globals hold
    arguments: dict[str, tuple[Setting, ast.expr]]
    until: int  # the line that is being run, or the last one

    def value(self, node: ast.AST | None) -> Any:
        """Return what an expression means here, or MISSING."""
        if self.call is not None:
            return self.call.value(node)
        return value_of(node, self._look_up)

    def _look_up(self, name: str) -> Any:
        if name in self.arguments and name not in self.bound:
            outer, given = self.arguments[name]
            return outer.value(given)
        return self.bound.get(name, MISSING)

    def before(self, line: int, name: str) -> Setting:
        """Return this setting as it was before a line gave a name another value: what the name meant is not known."""
        names = {**self.call.frame.f_globals, **self.call.names} if self.call is not None else dict(self.bound)
        names.pop(name, None)
        return replace(self, call=None, bound=names, until=line - 1)


def givers(setting: Setting, name: str) -> Iterator[ast.stmt | ast.expr]:
    """Yield what gave a name its value: assignments, and what was appended to it, up to the line being run."""
    found: list[ast.stmt | ast.expr] = []
    for node in walk(setting.scope):
        if isinstance(node, ast.stmt) and name in targets(node) and _ran(setting, node):
            found.append(node)
        appends = isinstance(node, ast.Call) and called(node) in ("append", "extend")
        if appends and isinstance(node, ast.Call) and written(receiver(node)) == name and _ran(setting, node):
            found.append(node)
    plain = [it for it in found if isinstance(it, ast.Assign) and setting.source.loop(it) is None]
    # What an assignment outside of loops and branches replaced is gone.
    if plain and next(setting.source.around(plain[-1]), None) is setting.scope:
        found = found[found.index(plain[-1]) :]
    yield from found


def _ran(setting: Setting, node: ast.AST) -> bool:
    line = getattr(node, "lineno", 0)
    if line <= setting.until:
        return True
    loop = setting.source.loop(node)
    return loop is not None and loop.lineno <= setting.until <= (loop.end_lineno or 0)  # type: ignore[attr-defined]


def given_by(statement: ast.Assign | ast.AugAssign | ast.AnnAssign, name: str) -> ast.expr | None:
    """Return what a name is given by a statement, also as one of several: `a, b = f(), g()`."""
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Tuple):
        for target in statement.targets:
            if isinstance(target, ast.Tuple) and len(target.elts) == len(statement.value.elts):
                for own, value in zip(target.elts, statement.value.elts, strict=True):
                    if written(own) == name:
                        return value
    return statement.value


def results(scope: Scope) -> list[ast.AST]:
    if isinstance(scope, ast.Lambda):
        return [scope.body]
    return [node.value for node in walk(scope) if isinstance(node, ast.Return) and node.value is not None]


def bound_by(scope: Scope, node: ast.Call, setting: Setting, method: bool) -> dict[str, tuple[Setting, ast.expr]]:
    """Return which expression of a call each parameter of a function stands for."""
    if isinstance(scope, ast.Module):
        return {}
    names = [it.arg for it in (*scope.args.posonlyargs, *scope.args.args)]
    names = names[1:] if method and names and names[0] in ("self", "cls") else names
    found = {}
    for position, name in enumerate([*names, *(it.arg for it in scope.args.kwonlyargs)]):
        given = argument(node, position if position < len(names) else len(node.args), name)
        if given is not None:
            found[name] = setting, given
    return found


def switched_off(source: Source, node: ast.AST) -> tuple[str, str, ast.AST] | None:
    """Return the code, the text and the node of the innermost block or decorator that switches recording off."""
    for outer in source.around(node):
        switches: list[tuple[ast.expr, ast.AST]] = []
        if isinstance(outer, ast.With | ast.AsyncWith):
            switches = [(item.context_expr, outer) for item in outer.items]
        elif isinstance(outer, FUNCTIONS):
            switches = [(decorator, decorator) for decorator in outer.decorator_list]
        for switch, place in switches:
            name = called(switch) or written(switch).rpartition(".")[2]
            if name == "enable_grad":
                return None
            off = name == "set_grad_enabled" and written(argument(switch, 0, "mode")) != "True"
            if name == "no_grad" or off:
                return "no-graph-no-grad", written(switch), place
            if name == "inference_mode":
                return "no-graph-inference", written(switch), place
        if isinstance(outer, (*FUNCTIONS, ast.Lambda)):
            return None
    return None


def switched_off_by(function: types.FunctionType) -> str:
    """Return the code for a function that was decorated so as to record nothing; "" for any other."""
    wrapper: Any = function
    while hasattr(wrapper, "__wrapped__"):
        for cell in wrapper.__closure__ or ():
            factory = cell.cell_contents
            switch = getattr(factory, "__self__", factory)
            if is_a(switch, torch.no_grad):
                return "no-graph-no-grad"
            if is_a(switch, torch.inference_mode):
                return "no-graph-inference"
        wrapper = wrapper.__wrapped__
    return ""


def file_of(function: Any) -> str:
    return getattr(getattr(inspect.unwrap(function), "__code__", None), "co_filename", "<frozen ")
