"""Where a value lost its graph: followed back through the learner's code, with what is still alive as evidence.

Nothing is run. Names that are still bound are asked whether their tensor requires a gradient; what has no name any
more is read off the syntax tree. So a cut is proved only where something before it is seen to require a gradient.
"""

from __future__ import annotations

import ast
import inspect
import math
import types
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy
import torch

from course_utils.explain.explanation import Place
from course_utils.explain.naming import receiver
from course_utils.explain.ownership import is_learners
from course_utils.explain.reading import is_a
from course_utils.explain.settings import (
    Setting,
    bound_by,
    file_of,
    given_by,
    givers,
    results,
    switched_off,
    switched_off_by,
)
from course_utils.explain.situation import Call, Situation
from course_utils.explain.source import called, written

MAX_DEPTH = 40
MAX_READS = 2_000  # of expressions: branches that assign to each other could be followed for ever

# Calls and attributes that give something without a graph, by the code of the card that explains them.
_CUTS = {
    **dict.fromkeys(("detach", "detach_", "data"), "no-graph-detach"),
    **dict.fromkeys(("item", "tolist", "float"), "no-graph-item"),
    **dict.fromkeys(("numpy", "array", "asarray", "from_numpy"), "no-graph-numpy"),
    **dict.fromkeys(("argmax", "argmin", "argsort", "multinomial", "bernoulli", "indices", "nonzero", "eq", "ne", "gt",
                     "lt", "ge", "le", "isclose", "searchsorted", "bucketize", "histc"), "no-graph-argmax"),
    **dict.fromkeys(("long", "int", "short", "byte", "bool", "char"), "no-graph-integers"),
    **dict.fromkeys(("tensor", "as_tensor", "Tensor", "FloatTensor", "new_tensor", "LongTensor"),
                    "no-graph-new-tensor"),
}  # fmt: skip
_INTEGERS = ("long", "int", "int64", "int32", "int16", "int8", "uint8", "bool")


@dataclass(frozen=True)
class Found:
    """What is known of a value: whether it had a graph, where it lost it, and whether a live object shows it.

    `state` is "attached", "cut", "bare" (nothing in it ever required a gradient) or "unknown".
    """

    state: Literal["attached", "cut", "bare", "unknown"]
    code: str = ""
    what: str = ""
    where: Place | None = None
    proved: bool = False
    frozen: tuple[str, ...] = ()  # modules on the way without a parameter that requires a gradient
    inputs: tuple[str, ...] = ()  # names of floating point tensors on the way that require none


class Flow:
    """Follows values back from the line at which an error was raised."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._seen: set[tuple[int, int]] = set()
        self._left = MAX_READS

    def cut(self, expression: ast.expr) -> Found:
        """Return where the value of an expression of the failing line lost its graph."""
        here = self._situation.here
        setting = None if here is None else self._at_work(here)
        return Found("unknown") if setting is None else self._read(setting, expression, 0)

    def _at_work(self, call: Call) -> Setting | None:
        if call.source is None or call.scope is None:
            return None
        arguments: dict[str, tuple[Setting, ast.expr]] = {}
        calls = self._situation.calls
        at = calls.index(call)
        if at and not call.is_module and isinstance(calls[at - 1].node, ast.Call):
            outer = self._at_work(calls[at - 1])
            node = calls[at - 1].node
            if outer is not None and isinstance(node, ast.Call) and called(node) == call.frame.f_code.co_name:
                arguments = bound_by(call.scope, node, outer, method=isinstance(node.func, ast.Attribute))
        return Setting(call.source, call.scope, call, {}, arguments, call.line)

    def _read(self, setting: Setting, node: ast.AST, depth: int) -> Found:
        key = id(setting.scope), id(node)
        self._left -= 1
        if depth > MAX_DEPTH or key in self._seen or self._left < 0:
            return Found("unknown")
        self._seen.add(key)
        try:
            return self._expression(setting, node, depth + 1)
        finally:
            self._seen.discard(key)

    def _expression(self, setting: Setting, node: ast.AST, depth: int) -> Found:
        if isinstance(node, ast.Constant | ast.JoinedStr):
            return Found("bare")
        if isinstance(node, ast.Name):
            return self._name(setting, node, depth)
        if isinstance(node, ast.Attribute):
            return self._attribute(setting, node, depth)
        if isinstance(node, ast.Call):
            return self._call(setting, node, depth)
        if isinstance(node, ast.Compare):
            inner = self._all(setting, [node.left, *node.comparators], depth)
            return self._cut(setting, node, inner, "no-graph-argmax")
        if isinstance(node, ast.Subscript):
            if called(node.value) in ("max", "min", "topk", "sort") and written(node.slice) in ("1", "-1"):
                return self._cut(setting, node, self._read(setting, node.value, depth), "no-graph-argmax")
            return self._read(setting, node.value, depth)
        parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
            parts = [node.elt, *(generator.iter for generator in node.generators)]
        return self._all(setting, parts, depth)

    def _all(self, setting: Setting, nodes: Iterable[ast.AST], depth: int) -> Found:
        return _joined([self._read(setting, node, depth) for node in nodes])

    def _name(self, setting: Setting, node: ast.Name, depth: int) -> Found:
        value = setting.value(node)
        if is_a(value, torch.Tensor) and value.requires_grad:
            return Found("attached", proved=True)
        if type(value) in (list, tuple) and any(is_a(it, torch.Tensor) and it.requires_grad for it in value):
            return Found("attached", proved=True)
        found = self._assigned(setting, node.id, depth)
        origin = found is None or found.state == "unknown" or found == Found("bare")
        if is_a(value, torch.Tensor) and origin and value.is_floating_point():
            return Found("bare", inputs=(node.id,))
        if found is not None and found.state == "attached" and is_a(value, torch.Tensor):
            return Found("unknown")  # it is seen to have no graph, so something was not understood
        plain = issubclass(type(value), (torch.Tensor, int, float, numpy.ndarray))
        return found or Found("bare" if plain else "unknown")

    def _assigned(self, setting: Setting, name: str, depth: int) -> Found | None:
        """Return what the statements that gave a name its value say; None where there are none."""
        statements = list(givers(setting, name))
        if not statements and name in setting.arguments:
            return self._read(*setting.arguments[name], depth)
        if not statements and setting.call is not None and setting.call.is_module:
            for cell in reversed(setting.call.sources.cells_before(setting.source)):
                earlier = replace(setting, source=cell, scope=cell.tree, until=len(cell.lines))
                statements = list(givers(earlier, name))
                if statements:
                    setting = earlier
                    break
        if not statements:
            return None
        return _joined([self._statement(setting, statement, name, depth) for statement in statements])

    def _statement(self, setting: Setting, statement: ast.stmt | ast.expr, name: str, depth: int) -> Found:
        given: ast.AST | None = statement
        if isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign):
            given = given_by(statement, name)
        elif isinstance(statement, ast.For | ast.AsyncFor):
            given = statement.iter
        elif isinstance(statement, ast.Call):  # losses.append(...)
            given = statement.args[0] if statement.args else None
        if given is None:
            return Found("unknown")
        once = isinstance(statement, ast.Assign) and setting.source.loop(statement) is None
        if once and any(isinstance(it, ast.Name) and it.id == name for it in ast.walk(given)):
            setting = setting.before(statement.lineno, name)  # total = torch.tensor(total): the one before
        return self._in_mode(setting, statement, self._read(setting, given, depth))

    def _in_mode(self, setting: Setting, node: ast.AST, found: Found) -> Found:
        """Cut what had a graph where the code stands in a block or function that records none."""
        if found.state != "attached":
            return found
        mode = switched_off(setting.source, node)
        if mode is None:
            return found
        code, text, block = mode
        sure = "set_grad_enabled" not in text or "False" in text
        return Found("cut", code, text, _place(setting, block), found.proved and sure)

    def _attribute(self, setting: Setting, node: ast.Attribute, depth: int) -> Found:
        value = setting.value(node)
        if node.attr == "grad":
            return Found("cut", "no-graph-second-order", written(node), _place(setting, node), False)
        if is_a(value, torch.Tensor) and value.requires_grad:
            return Found("attached", proved=True)
        if node.attr in ("data", "indices"):
            return self._cut(setting, node, self._read(setting, node.value, depth), _CUTS[node.attr])
        if is_a(value, torch.Tensor):
            found = self._assigned(setting, written(node), depth)
            return found if found is not None and found.state == "cut" else Found("bare", inputs=(written(node),))
        return self._read(setting, node.value, depth)

    def _call(self, setting: Setting, node: ast.Call, depth: int) -> Found:
        name = called(node)
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        owner = receiver(node)
        function = setting.value(node.func)
        made = setting.value(node.func.func) if isinstance(node.func, ast.Call) else None
        if is_a(made, type) and issubclass(made, torch.nn.Module) and is_learners(file_of(made.forward)):
            function = types.MethodType(made.forward, object())  # an object without a name, as in Loss()(x, y)
        inside = self._inside(setting, node, function, depth)
        if inside is not None:
            return inside
        if (name == "grad" and owner is not None and "autograd" in written(owner)) or function is torch.autograd.grad:
            recorded = any(keyword.arg == "create_graph" for keyword in node.keywords)
            what = "create_graph" if recorded else written(node, 60)
            return Found("cut", "no-graph-second-order", what, _place(setting, node), not recorded)
        library = owner is not None and is_a(setting.value(owner), types.ModuleType)
        parts = given if library or owner is None else [owner, *given]
        inner = self._all(setting, parts, depth)
        for module, code in ((numpy, "no-graph-numpy"), (math, "no-graph-item")):
            if library and owner is not None and setting.value(owner) is module:
                return self._cut(setting, node, inner, code)
        if name in ("to", "type") and any(written(it).rpartition(".")[2] in _INTEGERS for it in given):
            return self._cut(setting, node, inner, "no-graph-integers")
        plain = (name == "float" and owner is not None) or (name == "int" and owner is None and not given)
        if name in _CUTS and not plain:
            return self._cut(setting, node, inner, _CUTS[name])
        if name in ("zeros_like", "ones_like", "rand_like", "randn_like", "full_like", "empty_like", "len", "range"):
            return Found("bare")
        return inner

    def _inside(self, setting: Setting, node: ast.Call, function: Any, depth: int) -> Found | None:
        """Return what the called function or module makes of it; None where its code is not to be read."""
        owner: Any = None
        if is_a(function, torch.nn.Module):
            trainable = any(p.requires_grad for p in torch.nn.Module.parameters(function))
            some = next(iter(torch.nn.Module.parameters(function)), None) is not None
            owner, forward = function, type(function).forward
            if not is_learners(file_of(forward)):
                if trainable:
                    return Found("attached", proved=True)
                inner = self._all(setting, node.args, depth)
                return replace(inner, frozen=(written(node.func), *inner.frozen)) if some else inner
            if not trainable and some:
                inner = self._all(setting, node.args, depth)
                return replace(inner, frozen=(written(node.func), *inner.frozen))
            function = forward
        if is_a(function, types.MethodType):
            owner, function = function.__self__, function.__func__
        if not is_a(function, types.FunctionType):
            return None
        blocked = switched_off_by(function)
        function = inspect.unwrap(function)
        if not is_learners(function.__code__.co_filename):
            return None
        source = self._situation.sources.of(function.__code__.co_filename, function.__globals__)
        scope = source.function(function.__code__) if source is not None else None
        if source is None or scope is None:
            return None
        bound = dict(function.__globals__)
        own = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
        bound |= {name: cell.cell_contents for name, cell in own if cell != types.CellType()}
        parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
        for name in function.__code__.co_varnames:  # a function's own names are not the global ones
            bound.pop(name, None)
        if owner is not None and parameters:
            bound[parameters[0]] = owner
        arguments = bound_by(scope, node, setting, method=owner is not None)
        inside = Setting(source, scope, None, bound, arguments, len(source.lines))
        found = _joined([self._in_mode(inside, it, self._read(inside, it, depth)) for it in results(scope)])
        if found.state == "attached" and blocked:
            return Found("cut", blocked, f"@{'inference_mode' if 'inference' in blocked else 'no_grad'}",
                         _place(inside, scope), found.proved)  # fmt: skip
        return found

    def _cut(self, setting: Setting, node: ast.AST, inner: Found, code: str) -> Found:
        """Say that a graph ends here, if there was one."""
        if code == "no-graph-numpy" and inner.code == "no-graph-detach":
            return replace(inner, code=code)
        if inner.state == "attached":
            return Found("cut", code, written(node, 60), _place(setting, node), inner.proved)
        if inner.state == "unknown" and code != "no-graph-new-tensor":
            return Found("cut", code, written(node, 60), _place(setting, node), False)
        return inner


def _joined(parts: list[Found]) -> Found:
    """Return what is known of a value that was made of several."""
    frozen = tuple(dict.fromkeys(name for part in parts for name in part.frozen))
    inputs = tuple(dict.fromkeys(name for part in parts for name in part.inputs))
    for state in ("attached", "cut", "unknown"):
        of_state = sorted((part for part in parts if part.state == state), key=lambda part: not part.proved)
        if of_state:
            proved = of_state[0].proved and not (frozen and state == "cut")  # what is frozen may be what was meant
            return replace(of_state[0], frozen=frozen, inputs=inputs, proved=proved)
    return Found("bare", frozen=frozen, inputs=inputs)


def _place(setting: Setting, node: ast.AST) -> Place:
    return Place("cut here", setting.source.file, line := getattr(node, "lineno", 1), setting.source.text(line))
