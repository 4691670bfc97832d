"""What holds tensors and is no variable: attributes of modules and of objects in objects, and what hooks write to."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from types import CodeType, SimpleNamespace
from typing import Any

import torch

from course_utils.audit.classes import class_source
from course_utils.audit.lines import Spot, is_learners
from course_utils.audit.source import augmented, filled, statement, text_at, tree_of

_CONTAINERS = (list, tuple, deque, dict, set)
_PUTS = frozenset({"append", "appendleft", "add", "insert"})
_DEEP = 3
_MOST = 2000  # things are looked at


def stores_of(variables: Iterable[tuple[Spot, str, Any]]) -> Iterator[tuple[Spot, str, Any]]:
    """Yield the containers that some variables lead to, with a line of the file that writes them, and their names."""
    seen: set[int] = set()
    queue = deque((spot, name, value, 0) for spot, name, value in variables)
    while queue and len(seen) < _MOST:
        spot, name, value, depth = queue.popleft()
        if id(value) in seen or isinstance(value, torch.Tensor):
            continue
        seen.add(id(value))
        if isinstance(value, torch.nn.Module):
            for part in value.modules():
                yield from _containers(_place(type(part), spot), "self", vars(part), private=False)
                for hook in (*part._forward_hooks.values(), *part._forward_pre_hooks.values()):
                    yield from _of_function(hook, spot)
        elif _has_attributes(value):
            place = _place(value if isinstance(value, type) else type(value), spot)
            yield from _containers(place, name, vars(value))
            inside = vars(value).values() if depth < _DEEP else ()
            queue.extend((place, name, it, depth + 1) for it in inside)


def _containers(spot: Spot, owner: str, values: Any, *, private: bool = True) -> Iterator[tuple[Spot, str, Any]]:
    for name, value in list(values.items()):
        if isinstance(value, _CONTAINERS) and not name.startswith("__") and (private or name[:1] != "_"):
            yield spot, f"{owner}.{name}", value


def _has_attributes(value: Any) -> bool:
    """Say whether a thing is of a class of the learner's, or such a class, or one that only keeps attributes."""
    kind = value if isinstance(value, type) else type(value)
    if isinstance(value, SimpleNamespace):
        return True
    if not hasattr(value, "__dict__") or kind.__module__ in ("builtins", "torch"):
        return False
    return hasattr(kind, "__dataclass_fields__") or bool(class_source(kind)[1])


def _of_function(hook: Any, spot: Spot) -> Iterator[tuple[Spot, str, Any]]:
    """Yield what a hook of the learner's can write to: what it encloses, was given before, or belongs to."""
    given: tuple[Any, ...] = ()
    if isinstance(hook, partial):
        hook, given = hook.func, hook.args
    owner = getattr(hook, "__self__", None)
    if owner is None and not hasattr(hook, "__code__"):
        owner = hook  # an object that is called
    code = getattr(hook, "__code__", None)
    if isinstance(code, CodeType) and is_learners(code.co_filename):
        spot = Spot(code.co_filename, code.co_firstlineno)
        cells = zip(code.co_freevars, getattr(hook, "__closure__", None) or (), strict=False)
        found = {name: cell.cell_contents for name, cell in cells if _is_full(cell)}
        defaults = getattr(hook, "__defaults__", None) or ()
        names = code.co_varnames[: code.co_argcount]
        found |= dict(zip(reversed(names), reversed(defaults), strict=False)) | dict(zip(names, given, strict=False))
        for name, value in found.items():
            if isinstance(value, _CONTAINERS):
                yield spot, name, value
            elif name == "self" or (_has_attributes(value) and not isinstance(value, torch.nn.Module)):
                yield from _containers(spot, name, getattr(value, "__dict__", {}))
    if owner is not None and hasattr(owner, "__dict__"):
        yield from _containers(_place(type(owner), spot), "self", vars(owner))


def _is_full(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _place(kind: type, otherwise: Spot) -> Spot:
    node, file = class_source(kind)
    return Spot(file, node.lineno) if node is not None else otherwise


def line_that_fills(spot: Spot, name: str) -> Spot | None:
    """Return the line that puts something into a container, by its name or by that of the attribute that it is."""
    found = filled(spot, name) or augmented(spot, name) or _grown(spot, name)
    attribute = name.rpartition(".")[2] if "." in name else ""
    tree = tree_of(spot.file) if found is None and attribute else None
    for node in ast.walk(tree) if tree is not None else ():
        if found is None and isinstance(node, ast.Attribute) and node.attr == attribute:
            other = ast.unparse(node)
            found = filled(spot, other) or augmented(spot, other) or _grown(spot, other)
    return found


def _grown(spot: Spot, name: str) -> Spot | None:
    """Return the line that makes a container anew out of itself and more: `kept = (*kept, loss)`."""
    tree = tree_of(spot.file)
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Assign) or name not in map(ast.unparse, node.targets):
            continue
        if any(isinstance(part, ast.Starred) and ast.unparse(part.value) == name for part in ast.walk(node.value)):
            return Spot(spot.file, node.lineno)
    return None


def detached(spot: Spot | None) -> str:
    """Return the statement of a line that keeps a tensor, with what it keeps cut off: `kept.append(x.detach())`."""
    found = statement(spot) if spot is not None else None
    for node in ast.walk(found) if isinstance(found, ast.Expr) else ():
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _PUTS:
            continue
        if node.args and isinstance(node.args[-1], ast.Name | ast.Attribute):
            return f"{ast.unparse(node.func)}({ast.unparse(node.args[-1])}.detach())"
    if isinstance(found, ast.Assign) and isinstance(found.value, ast.Name | ast.Attribute) and spot is not None:
        return f"{text_at(spot)}.detach()"
    return "x = x.detach()  # before it is kept"
