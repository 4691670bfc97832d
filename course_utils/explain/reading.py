"""Values of the learner's, read without running any of their code."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import Any, TypeGuard, TypeVar

import torch

Kind = TypeVar("Kind")

MISSING = object()  # what a look-up gives where there is nothing, since None is a value


def is_a(value: Any, kind: type[Kind]) -> TypeGuard[Kind]:
    """Return what `isinstance` does, but by the type alone: `isinstance` would ask an object for its `__class__`."""
    return issubclass(type(value), kind)


def value_of(node: ast.AST | None, look_up: Callable[[str], Any]) -> Any:
    """Return what an expression of names, attributes and constant indices means now, or MISSING."""
    if isinstance(node, ast.Name):
        return look_up(node.id)
    if isinstance(node, ast.Attribute):
        return attribute(value_of(node.value, look_up), node.attr)
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Subscript):
        return element(value_of(node.value, look_up), value_of(node.slice, look_up))
    return MISSING


def attribute(owner: Any, name: str) -> Any:
    """Return an attribute that can be read without running code of the learner's, or MISSING."""
    if is_a(owner, torch.Tensor):
        return owner.grad if name == "grad" and owner.is_leaf else MISSING
    if is_a(owner, types.ModuleType):
        return vars(owner).get(name, MISSING)
    own = own_attributes(owner)
    if is_a(owner, torch.nn.Module):
        for kept in ("_parameters", "_modules", "_buffers"):
            if name in own.get(kept, ()):
                return own[kept][name]
    if name in own:
        return own[name]
    for base in type(owner).__mro__ if owner is not MISSING else ():
        if name in vars(base):
            found = vars(base)[name]
            return types.MethodType(found, owner) if is_a(found, types.FunctionType) else found
    return MISSING


def element(owner: Any, key: Any) -> Any:
    """Return an element of a plain list, tuple or dict, or a layer of a Sequential, or MISSING."""
    try:
        if type(owner) in (list, tuple, dict) and type(key) in (int, str):
            return owner[key]
        if (is_a(owner, torch.nn.Sequential) or is_a(owner, torch.nn.ModuleList)) and type(key) is int:
            return list(owner._modules.values())[key]
        if is_a(owner, torch.nn.ModuleDict) and type(key) is str:
            return owner._modules[key]
    except (IndexError, KeyError):
        pass
    return MISSING


def own_attributes(owner: Any) -> dict[str, Any]:
    """Return what an object holds, without asking the object."""
    try:
        own = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return {}
    return own if type(own) is dict else {}
