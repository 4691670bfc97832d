"""Arithmetic on numbers from 0 to 255 in one byte each: what leaves that range comes in again at the other end."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Subset

from course_utils.audit.holders import variables
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import arguments, names_read, own
from course_utils.audit.outputs import Values, calls_in, values_in
from course_utils.audit.reading import Scopes, Told
from course_utils.audit.source import blocks_of, taken_apart
from course_utils.explain.source import applied_to, called

_VIEWS = frozenset(
    {
        *("view", "reshape", "permute", "transpose", "flip", "copy", "clone", "squeeze", "unsqueeze", "contiguous"),
        *("from_numpy", "stack", "as_tensor", "fliplr", "flipud", "moveaxis", "ascontiguousarray", "pad", "roll"),
    }
)
_MODULES = ("torch", "np", "numpy")
_SAMPLE = 4096
_LARGEST = 255


class Range(NamedTuple):
    """The smallest and the largest of some numbers."""

    low: int
    high: int


def bytes_at_hand() -> dict[str, Range]:
    """Return what holds bytes of several values now, by the text that stands for it: "images", or "self.images"."""
    found: dict[str, Range] = {}
    for _, name, value in variables():
        for text, it in ((name, value), *_of_data(value)):
            limits = _range(it)
            if limits is not None and limits.high > 1:
                found[text] = limits
    return found


def _of_data(value: Any) -> Iterator[tuple[str, Any]]:
    while isinstance(value, DataLoader | Subset):
        value = value.dataset
    if isinstance(value, Dataset):
        yield from ((f"self.{name}", it) for name, it in getattr(value, "__dict__", {}).items())


def _range(value: Any) -> Range | None:
    if isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.size:
        flat = value.reshape(-1)[:: max(1, value.size // _SAMPLE)]
        return Range(int(flat.min()), int(flat.max()))
    if isinstance(value, torch.Tensor) and value.dtype == torch.uint8 and value.numel():
        row = value.detach().reshape(-1)[:: max(1, value.numel() // _SAMPLE)]
        return Range(int(row.min()), int(row.max()))
    return None


def wrapped(scopes: Scopes, known: dict[str, Range]) -> Iterator[Told]:
    """Yield the sums, differences and products of bytes that leave their range."""
    for file, scope in scopes if known else ():
        names, first = {**known, **_handed_in(scope, scopes, known)}, frozenset(known)
        values = values_in(scope)
        for line in own(scope):
            if blocks_of(line):
                continue
            for node in ast.walk(line):
                if _is_wrapped(node, names, values):
                    yield _told(Spot(file, node.lineno), ast.unparse(node))  # type: ignore[attr-defined]
            for to in line.targets if isinstance(line, ast.Assign) else ():
                for target, value in zip(taken_apart(to), taken_apart(line.value), strict=False):  # type: ignore[attr-defined]
                    _bind(ast.unparse(target), value, names, first)


def _handed_in(scope: ast.AST, callers: Scopes, known: dict[str, Range]) -> dict[str, Range]:
    """Return the parameters that calls of a function give bytes for."""
    found: dict[str, Range] = {}
    if not isinstance(scope, ast.FunctionDef):
        return found
    for _, caller in callers:
        for call in calls_in(caller).get(scope.name, ()):
            for name, value in arguments(scope, call):
                held = _bytes(value, known)
                if held is not None:
                    found[name] = held
    return found


def _is_wrapped(node: ast.AST, names: dict[str, Range], values: Values) -> bool:
    if not isinstance(node, ast.BinOp | ast.AugAssign) or not isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        return False
    left, right = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
    one, other = _bytes(left, names), _bytes(right, names)
    if isinstance(node, ast.AugAssign) and one is None:
        return False
    return _leaves(node.op, one or _constant(left, values), other or _constant(right, values), one, other)


def _bind(name: str, value: ast.expr, names: dict[str, Range], first: frozenset[str]) -> None:
    """Note what a name stands for from here on. One that holds bytes while it trains is made somewhere."""
    found = _bytes(value, names)
    if found is not None:
        names[name] = found
    elif (name not in first or name in names_read(value)) and not _is_wrapped(value, names, {}):
        names.pop(name, None)


def _bytes(node: ast.expr, names: dict[str, Range]) -> Range | None:
    """Return what an expression holds that is a part, a view or a copy of bytes; None for anything else."""
    while True:
        if ast.unparse(node) in names:
            return names[ast.unparse(node)]
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and called(node) in _VIEWS:
            inner = applied_to(node, _MODULES)
            if inner is None:
                return None
            node = inner.elt if isinstance(inner, ast.ListComp) else inner
        else:
            return None


def _constant(node: ast.expr, values: Values) -> Range | None:
    """Return a whole number, as it stands or in a byte of its own: np.uint8(...) holds up to 255."""
    bound = values.get(node.id, []) if isinstance(node, ast.Name) else []
    if len(bound) == 1 and bound[0] is not None:
        return _constant(bound[0].value, {})
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return Range(node.value, node.value)
    if isinstance(node, ast.Call) and called(node) == "uint8":
        return Range(0, _LARGEST)
    whole = isinstance(node, ast.Call) and ast.unparse(node.func) in ("int", "random.randint", "randint")
    return Range(1, _LARGEST) if whole else None


def _leaves(op: ast.operator, left: Range | None, right: Range | None, one: Range | None, other: Range | None) -> bool:
    """Say whether an operation on bytes leaves their range. Of two that are bytes, only a difference is sure to."""
    if left is None or right is None or not (one or other):
        return False
    if isinstance(op, ast.Sub):
        return left.low < right.high and (left.high < _LARGEST or one is not None)
    if one and other:
        return False
    return left.high + right.high > _LARGEST if isinstance(op, ast.Add) else left.high * right.high > _LARGEST


def _told(spot: Spot, text: str) -> Told:
    return Told(
        "bytes-wrap",
        spot,
        f"{text if len(text) < 50 else 'this line'} computes with bytes: results below 0 or above 255 wrap round",
        "Numbers of type uint8 go from 0 to 255. 250 + 10 is 4, and 3 - 5 is 254: the brightest places turn dark, and "
        "the darkest bright. No error is raised, and a conversion afterwards is too late.",
        "image.astype(np.float32)  # or .float(), before the arithmetic",
    )
