"""Tuples, lists, arrays, numbers and None where only a tensor does: `out.mean()` of what an LSTM returned."""

from __future__ import annotations

import ast
import re
from typing import Any

import torch

from course_utils.explain.explanation import Explanation
from course_utils.explain.families.not_tensors import without_return
from course_utils.explain.naming import bound_before, receiver
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card, with_article
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, written


def _taken(s: Situation, m: re.Match[str]) -> Explanation | None:
    asked = m.groupdict().get("asked") or ""
    kind = m["kind"]
    if asked and not hasattr(torch.Tensor, asked):
        return None
    node, value = _culprit(s, kind)
    if node is None and kind == "NoneType" and isinstance(receiver(s.node), ast.Call):
        node = receiver(s.node)  # what a call returned, and nothing has a name for
    if node is None:
        return None
    name, made = written(node), _made(s, node)
    if kind == "NoneType":
        function = without_return(s, node)
        if not function:
            return None
        why = f"`{name}` is None: `{function}` has no return with a value."
        fix = f"# at the end of {function}: return what it computed"
        return card("not-a-tensor", f"`{name}` is None, not a tensor", why, fix, s.needed())
    if is_a(value, tuple) or is_a(value, list):
        tensors = [at for at, it in enumerate(value) if is_a(it, torch.Tensor)]
        return _several(s, node, kind, len(value), tensors) if tensors else None
    if kind == "numpy.ndarray":
        why = (
            f"`{name}` is a NumPy array: it has no `{asked}`, and no graph." if asked else f"`{name}` is a NumPy array."
        )
        fix = f"{name} = torch.from_numpy({name})  # or keep the tensor that it was made from"
        if ".numpy(" in written(made):
            why += f" `{written(made)}` made it one."
            fix = "# leave out .numpy(): the tensor before it has this, and its graph"
        return card("not-a-tensor", f"`{name}` is an array of NumPy's, not a tensor", why, fix, s.needed())
    if called(made) == "item" or asked == "item":
        why = f"`{name}` is a plain Python number" + (f", which has no `{asked}`." if asked else ".")
        why += f" `{written(made)}` made it one." if called(made) == "item" and written(made) else ""
        fix = f"{name}  # the number itself" if asked == "item" else "# keep the tensor: .item() is for the log"
        return card("not-a-tensor", f"`{name}` is {with_article(kind)}, not a tensor", why, fix, s.needed())
    return None


def _several(s: Situation, node: ast.expr, kind: str, count: int, tensors: list[int]) -> Explanation:
    """Explain a list of tensors, or what a layer or function returned, where one tensor is meant."""
    name, made = written(node), _made(s, node)
    headline = f"`{name}` is a {kind} of {count}, not a tensor"
    does = written(made.func) if isinstance(made, ast.Call) else ""
    layer = s.here.value(made.func) if s.here is not None and isinstance(made, ast.Call) else None
    if is_a(layer, torch.nn.RNNBase) and made is not node:
        why = f"`{does}` returns two things: its outputs for all steps, and the state after the last one."
        return card("not-a-tensor", headline, why, f"{name}, state = {written(made)}", s.needed())
    if kind == "list":
        why = f"`{name}` is a list that holds tensors."
        fix = f"torch.stack({name})  # one tensor of all, with their graphs, where they are tensors of one shape"
        return card("not-a-tensor", headline, why, fix, s.needed(), len(tensors) == count)
    why = f"`{name}` holds {count} values" + (f": `{does}` returns several." if does else ".")
    fix = f"{name}[{tensors[0]}]  # or whichever of the {count} is meant"
    return card("not-a-tensor", headline, why, fix, s.needed(), False)


def _culprit(s: Situation, kind: str) -> tuple[ast.expr | None, Any]:
    """Return the expression of the failing line whose value is of the kind that was no tensor, and its value."""
    at = s.node
    if s.here is None or at is None:
        return None, None
    parts = [it for it in ast.walk(at) if isinstance(it, ast.Name | ast.Attribute | ast.Subscript)]
    for node in parts:
        value = s.here.value(node)
        full = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        if kind in (full, type(value).__name__) and written(node):
            return node, value
    return None, None


def _made(s: Situation, node: ast.expr) -> ast.expr | None:
    """Return the expression that gave a name its value, in the last assignment before the failing line."""
    before = bound_before(s.here, written(node)) if s.here is not None else []
    last = before[-1] if before else None
    whole = isinstance(last, ast.Assign) and written(last.targets[0]) == written(node)
    return last.value if whole and isinstance(last, ast.Assign) else None


_KIND = r"(?P<kind>tuple|list|numpy\.ndarray|float|int|NoneType|torch\.return_types\.\w+)"
RULES = (
    Rule(AttributeError, rf"^'{_KIND}' object has no attribute '(?!backward|grad\b)(?P<asked>\w+)'", _taken),
    Rule(TypeError, rf"argument '\w+' \(position \d+\) must be Tensor, not {_KIND}$", _taken),
    Rule(TypeError, rf"unsupported operand type\(s\) for \S+: '{_KIND}' and 'Tensor'", _taken),
    Rule(TypeError, rf"unsupported operand type\(s\) for \S+: 'Tensor' and '{_KIND}'", _taken),
)
