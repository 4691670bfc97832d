"""Lines of the learner's code that write into a tensor in place, or whose operation saved it."""

from __future__ import annotations

import ast
import inspect
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from course_utils.explain.aliases import alias, bound
from course_utils.explain.explanation import Place
from course_utils.explain.naming import argument, receiver
from course_utils.explain.ownership import is_learners
from course_utils.explain.reading import MISSING, is_a
from course_utils.explain.situation import Call
from course_utils.explain.source import called, walk, written

_OPERATORS = {
    ast.Mult: "*", ast.Add: "+", ast.Sub: "-", ast.Div: "/", ast.Pow: "**", ast.MatMult: "@",
}  # fmt: skip
# What code may call the operation that autograd names on the left.
_ALSO = {
    "@": ("matmul", "mm", "bmm", "linear"), "*": ("mul", "prod"), "**": ("pow", "square"), "/": ("div",),
    "threshold": ("relu",), "leaky_relu": ("leaky_relu",),
    "linalg_vector_norm": ("norm", "vector_norm"),
}  # fmt: skip

_KEEPS_VALUES = ("requires_grad_", "detach_", "retain_grad_")


@dataclass(frozen=True)
class Writing:
    """A statement that writes into a tensor, where it stands, and whether it must have run exactly once by now.

    `reached` is the line, and its file, of the function at work that is it, or called it.
    """

    statement: ast.stmt
    place: Place
    reached: int
    reached_in: str
    sure: bool


def writings(call: Call, name: str) -> Iterator[Writing]:
    """Yield the statements that write into the tensor called `name`: the function's own, up to the line being run,
    and those of the learner's functions that it gave the tensor to."""
    for statement in _statements(call):
        sure = surely_ran(call, statement)
        for part in own_parts(statement):
            if writes_into(part, name):
                place = call.place("overwritten here", statement)
                yield Writing(statement, place, statement.lineno, place.file, sure)
                break
        else:
            for part in own_parts(statement):
                if isinstance(part, ast.Call):
                    yield from _inside(call, part, name, sure)


def _inside(call: Call, node: ast.Call, name: str, sure: bool) -> Iterator[Writing]:
    """Yield the statements by which a called function writes into the argument called `name`."""
    function = call.value(node.func)
    method = is_a(function, types.MethodType)
    function = inspect.unwrap(function.__func__ if method else function) if callable(function) else None
    if not is_a(function, types.FunctionType) or not is_learners(function.__code__.co_filename):
        return
    source = call.sources.of(function.__code__.co_filename, function.__globals__)
    scope = source.function(function.__code__) if source is not None else None
    if source is None or scope is None:
        return
    names = function.__code__.co_varnames[method : function.__code__.co_argcount]
    for position, parameter in enumerate(names):
        if written(argument(node, position, parameter)) != name:
            continue
        aliases = [parameter, *(it for it in bound(scope) if alias(scope, it) == parameter)]
        for inner in walk(scope):
            if isinstance(inner, ast.stmt) and any(writes_into(it, own) for it in own_parts(inner) for own in aliases):
                place = source.place("overwritten here", inner)
                yield Writing(
                    inner, place, node.lineno, call.file, sure and any(it is inner for it in getattr(scope, "body", []))
                )


def steps(call: Call, parameter: torch.Tensor) -> Iterator[ast.stmt]:
    """Yield the statements of a function that step an optimizer of a parameter."""
    for node in _statements(call):
        for part in own_parts(node):
            if called(part) == "step" and _optimizes(call, receiver(part), part, parameter):
                yield node


def saves(call: Call, operation: str, names: list[str]) -> Iterator[ast.stmt]:
    """Yield the statements that run an operation on one of the named tensors, or to make one."""
    yield from (node for node in _statements(call) if runs(node, operation, names))


def runs(statement: ast.stmt, operation: str, names: list[str]) -> bool:
    """Return whether a statement runs an operation, and mentions one of the names."""
    words = {operation, *_ALSO.get(operation, ())}
    kinds = ast.Name | ast.Attribute | ast.Subscript
    if not {written(it) for it in ast.walk(statement) if isinstance(it, kinds)} & set(names):
        return False
    return any(
        called(part) in words or (isinstance(part, ast.BinOp) and _OPERATORS.get(type(part.op)) in words)
        for part in own_parts(statement)
    )


def out_of_place(statement: ast.stmt, view: str = "", looped: bool = False) -> str:
    """Return the statement so that it makes a new tensor.

    `view` is the name of the tensor that what is written into is a part of: then a new tensor would not change that.
    The same holds where the name is the variable of a loop (`looped`).
    """
    into = base_of_statement(statement)
    if view and view != into:
        return f"{view} = {view}.clone()  # before {into or 'the view'} is taken of it: the write goes into the copy"
    new = _Elsewhere()
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name | ast.Attribute):
        whole: ast.expr = ast.BinOp(ast.parse(into, mode="eval").body, statement.op, statement.value)
    elif isinstance(statement, ast.Expr | ast.Assign) and not _writes_a_part(statement):
        whole = new.visit(ast.parse(ast.unparse(statement.value), mode="eval").body)
    else:
        whole = ast.Name(into)  # a part is written into
    code = ast.unparse(ast.fix_missing_locations(whole))
    if isinstance(statement, ast.Assign) and new.changed:
        return f"{ast.unparse(statement.targets[0])} = {code}  # makes a new tensor"
    if (
        re.fullmatch(r"[A-Za-z_][\w.]*", into)
        and (new.changed or isinstance(statement, ast.AugAssign))
        and code != into
    ):
        if looped:
            return f"new = []  # before the loop; torch.stack(new) after it\nnew.append({code})"
        return f"{into} = {code}  # makes a new tensor"
    reads = {written(it) for it in ast.walk(statement.value)} if isinstance(statement, ast.Assign) else set()
    if _writes_a_part(statement) and into in reads and isinstance(statement, ast.Assign):
        part = ast.unparse(statement.targets[0]).replace(into, "new", 1)
        return (
            f"new = {into}.clone()\n{part} = {ast.unparse(statement.value)}\n{into} = new  # or a list, and torch.stack"
        )
    if _writes_a_part(statement) and into:
        return f"{into} = {into}.clone()  # before this line: then it writes into a copy"
    return "# write the result into a new tensor: without `_`, `+=`, `out=` and inplace=True"


def _writes_a_part(statement: ast.stmt) -> bool:
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    return isinstance(target, ast.Subscript)


def base_of_statement(statement: ast.stmt) -> str:
    """Return the variable that a statement writes into: that of its first call in place, or its target."""
    for part in own_parts(statement):
        if isinstance(part, ast.Call):
            for it in (receiver(part), argument(part, 0)):
                if (name := base_of(it)) and writes_into(part, name):
                    return name
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    return base_of(target) if isinstance(target, ast.expr) else ""


class _Elsewhere(ast.NodeTransformer):
    """Writes calls so that they make a new tensor: `mul` for `mul_`, and no inplace=True."""

    changed = False

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        keywords = [it for it in node.keywords if it.arg not in ("inplace", "out")]
        self.changed |= len(keywords) < len(node.keywords)
        node.keywords = keywords
        method = called(node)
        if not method.endswith("_") or method.startswith("__") or method in _KEEPS_VALUES:
            return node
        self.changed = True
        owner = receiver(node)
        if method in ("zero_", "fill_") and owner is not None:
            made = ast.parse(f"torch.{'zeros' if method == 'zero_' else 'full'}_like()", mode="eval").body
            assert isinstance(made, ast.Call)
            made.args = [owner, *node.args]
            return made
        if isinstance(node.func, ast.Attribute):
            plain = method.removesuffix("_")
            homes = (torch.Tensor, torch, torch.nn.functional)
            if any(hasattr(home, plain) for home in homes):
                node.func.attr = plain
            else:  # uniform_, fill_diagonal_ and their like have no other form
                node.func.value = ast.Call(ast.Attribute(node.func.value, "clone"), [], [])
        return node


def surely_ran(call: Call, statement: ast.stmt) -> bool:
    """Return whether a statement must have run exactly once before the line being run: no branch or loop is between.

    That of an earlier cell counts as run once: what was written more than once shows by the tensor's version.
    """
    source, here = call.home(statement), call.statement
    if source is None or here is None or source.loop(statement) is not None:
        return False
    outer = statement
    while isinstance(parent := next(source.around(outer), None), ast.With):  # its body always runs
        outer = parent
    if source is not call.source:
        return parent is source.tree
    blocks = [source.block(it) for it in (here, *source.around(here)) if isinstance(it, ast.stmt)]
    return statement.lineno < here.lineno and source.block(outer) in blocks


def _statements(call: Call) -> Iterator[ast.stmt]:
    if call.scope is None or call.source is None:
        return
    here = call.statement
    loop = call.source.loop(here) if here is not None else None
    scopes: list[tuple[ast.AST, bool]] = [(call.scope, False)]
    if call.is_module:
        scopes = [*((cell.tree, True) for cell in call.sources.cells_before(call.source)), *scopes]
    for scope, earlier in scopes:
        for node in walk(scope):
            if not isinstance(node, ast.stmt):
                continue
            inside = loop is not None and any(it is loop for it in call.source.around(node))
            if earlier or node.lineno <= call.line or inside:
                yield node


def own_parts(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the parts of a statement without those of statements inside it."""
    yield statement
    waiting = [it for it in ast.iter_child_nodes(statement) if not isinstance(it, ast.stmt)]
    for node in waiting:
        yield node
        waiting += [it for it in ast.iter_child_nodes(node) if not isinstance(it, ast.stmt)]


def writes_into(part: ast.AST, name: str) -> bool:
    """Return whether a part of a statement writes into the tensor called `name`."""
    if isinstance(part, ast.AugAssign):
        return base_of(part.target) == name
    if isinstance(part, ast.Assign):
        return any(isinstance(it, ast.Subscript) and base_of(it) == name for it in part.targets)
    if not isinstance(part, ast.Call):
        return False
    if any(it.arg == "out" and written(it.value) == name for it in part.keywords):
        return True
    inplace = any(it.arg == "inplace" and written(it.value) == "True" for it in part.keywords)
    method = called(part)
    if method.endswith("_") and not method.endswith("__") and method not in _KEEPS_VALUES:
        inplace = True
    if not inplace:
        return False
    owner = receiver(part)
    return (owner is not None and base_of(owner) == name) or base_of(argument(part, 0)) == name


def base_of(node: ast.expr | None) -> str:
    """Return the variable behind `x[0]`, `x.data`, `x.view(-1)`: "x", or "self.x"."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif isinstance(node, ast.Attribute) and node.attr in ("data", "T", "mT", "real"):
            node = node.value
        else:
            return written(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def _optimizes(call: Call, owner: ast.expr | None, part: ast.AST, parameter: torch.Tensor) -> bool:
    value: Any = call.value(owner) if owner is not None else MISSING
    if not is_a(value, torch.optim.Optimizer):
        value = call.value(argument(part, 0))  # scaler.step(optimizer)
    if not is_a(value, torch.optim.Optimizer):
        return False
    return any(own is parameter for group in value.param_groups for own in group["params"])
