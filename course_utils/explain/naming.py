"""The learner's own names for tensors and modules."""

from __future__ import annotations

import ast
import itertools
import re
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import torch

from course_utils.explain.reading import is_a, own_attributes
from course_utils.explain.situation import Call, Situation
from course_utils.explain.source import walk, written

# So many elements of a list, and so many names of a module's parameters are looked at.
MAX_ELEMENTS = 100
MAX_PARAMETERS = 2_000


def variables(call: Call) -> Iterator[tuple[str, Any]]:
    """Yield the names of a function with what they mean: its own, then the global ones that it uses."""
    own = call.names
    mentioned = [node.id for node in ast.walk(call.statement) if isinstance(node, ast.Name)] if call.statement else []
    order = [*mentioned, *own] if call.is_module else [*mentioned, *own, *call.frame.f_code.co_names]
    for name in dict.fromkeys(order):
        value = call.look_up(name)
        hidden = name.startswith("_") and name not in mentioned
        if not hidden and not is_a(value, type) and name.isidentifier():
            yield name, value


def tensors(call: Call) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors that a function can name: variables first, then what modules, objects and lists hold."""
    inside: list[tuple[str, Any]] = []
    for name, value in variables(call):
        if is_a(value, torch.Tensor):
            yield name, value
        else:
            inside.append((name, value))
    for name, value in inside:
        yield from _held(name, value, deeper=True)


def _held(name: str, value: Any, deeper: bool) -> Iterator[tuple[str, torch.Tensor]]:
    if is_a(value, torch.nn.Module):
        for path, parameter in itertools.islice(torch.nn.Module.named_parameters(value), MAX_PARAMETERS):
            yield dotted(name, path), parameter
        for path, buffer in itertools.islice(torch.nn.Module.named_buffers(value), MAX_PARAMETERS):
            yield dotted(name, path), buffer
    inner: Iterator[tuple[str, Any]]
    if type(value) in (list, tuple, deque):
        parts = enumerate(itertools.islice(value, MAX_ELEMENTS))
        inner = ((f"{name}[{position}]", item) for position, item in parts)
    elif type(value) is dict:
        inner = ((f"{name}[{key!r}]", item) for key, item in itertools.islice(value.items(), MAX_ELEMENTS)
                 if type(key) in (int, str))  # fmt: skip
    else:
        own = {} if is_a(value, types.ModuleType) else own_attributes(value)
        items = itertools.islice(own.items(), MAX_ELEMENTS)
        own_items = ((key, item) for key, item in items if type(key) is str)
        inner = ((f"{name}.{key}", it) for key, it in own_items if not key.startswith("_") or is_a(it, torch.Tensor))
    for path, item in inner:
        if is_a(item, torch.Tensor):
            yield path, item
        elif (deeper and type(item) in (list, tuple, dict)) or (deeper and is_a(item, torch.nn.Module)):
            whole = is_a(item, torch.nn.Module) and not is_a(value, torch.nn.Module)
            yield from _held(path, item, deeper=whole)


def modules(call: Call) -> Iterator[tuple[str, torch.nn.Module]]:
    """Yield the modules that a function can name, each with its parts."""
    for name, value in variables(call):
        held = [(name, value)]
        if not is_a(value, torch.nn.Module) and name == "self":
            held = [(f"self.{key}", it) for key, it in own_attributes(value).items()]
        for path, module in held:
            if is_a(module, torch.nn.Module):
                for inner, part in torch.nn.Module.named_modules(module):
                    yield dotted(path, inner), part


def dotted(name: str, path: str) -> str:
    """Return "model[0].weight" for "model" and "0.weight"."""
    return re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", f"{name}.{path}") if path else name


def named(situation: Situation, matches: Callable[[torch.Tensor], bool]) -> str:
    """Return the learner's name of the first tensor that matches, innermost function first; "" without one."""
    for call in reversed(situation.calls):
        for name, tensor in tensors(call):
            if matches(tensor):
                return name
    return ""


def name_of(situation: Situation, tensor: Any, default: str) -> str:
    """Return a tensor's name in backticks, or `default` where the learner has none for it."""
    name = named(situation, lambda other: other is tensor)
    return f"`{name}`" if name else default


def module_name(situation: Situation, module: torch.nn.Module) -> str:
    """Return the learner's name for a module, innermost function first; "" without one."""
    for call in reversed(situation.calls):
        for name, other in modules(call):
            if other is module:
                return name
    return ""


def argument(node: ast.AST | None, position: int, keyword: str = "") -> ast.expr | None:
    """Return one argument of a call as it was written."""
    if not isinstance(node, ast.Call):
        return None
    for given in node.keywords:
        if keyword and given.arg == keyword:
            return given.value
    if position < len(node.args) and not any(isinstance(it, ast.Starred) for it in node.args[: position + 1]):
        return node.args[position]
    return None


def class_called(s: Situation) -> type | None:
    """Return the class that the failing call makes an object of; None where it calls anything else."""
    kind = s.here.value(s.node.func) if s.here is not None and isinstance(s.node, ast.Call) else None
    return kind if is_a(kind, type) else None


def receiver(node: ast.AST | None) -> ast.expr | None:
    """Return `x` of `x.method(...)` or `x.attribute`."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.value if isinstance(node, ast.Attribute) else None


def assigned(call: Call, name: str) -> list[ast.stmt]:
    """Return the statements of a function that bind or change a name, in source order."""
    if call.scope is None:
        return []
    return [node for node in walk(call.scope) if isinstance(node, ast.stmt) and name in targets(node)]


def bound_before(call: Call, name: str) -> list[ast.stmt]:
    """Return the statements before a function's failing line that bind or change a name, in source order."""
    return [node for node in assigned(call, name) if node.lineno < call.line]


def targets(statement: ast.stmt) -> list[str]:
    """Return the names that a statement binds, with attributes as written: ["h", "self.state"]."""
    found: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        found = list(statement.targets)
    elif isinstance(statement, ast.AugAssign | ast.AnnAssign | ast.For | ast.AsyncFor):
        found = [statement.target]
    elif isinstance(statement, ast.With | ast.AsyncWith):
        found = [item.optional_vars for item in statement.items if item.optional_vars is not None]
    flat: list[ast.expr] = []
    while found:
        target = found.pop(0)
        if isinstance(target, ast.Tuple | ast.List):
            found = [*target.elts, *found]
        else:
            flat.append(target.value if isinstance(target, ast.Starred) else target)
    return [written(target, 60) for target in flat]
