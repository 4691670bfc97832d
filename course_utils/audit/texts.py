"""Texts that a learner's code looks for in the names of parameters and modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from course_utils.audit.expressions import assigned_value
from course_utils.audit.lines import Spot
from course_utils.audit.source import function_around

_NAMES = ("named_parameters", "named_modules", "named_children", "state_dict")
_ENDS = ("startswith", "endswith")


@dataclass(frozen=True)
class Text:
    """A text, how it is looked for, and the line that it is written on."""

    text: str
    how: str  # "in", "startswith", "endswith", "equals"
    spot: Spot

    def fits(self, name: str) -> bool:
        if self.how == "in":
            return self.text in name
        if self.how == "equals":
            return self.text == name
        return name.startswith(self.text) if self.how == "startswith" else name.endswith(self.text)


@dataclass(frozen=True)
class Test:
    """One condition on the names of a model, and all texts in it."""

    spot: Spot
    texts: tuple[Text, ...]


@lru_cache(maxsize=128)
def tests(file: str, scope: ast.AST) -> tuple[Test, ...]:
    """Return the conditions on names in a function, or in the statements of a file, with the texts that are known."""
    found = []
    for node in _own(scope):
        if isinstance(node, ast.For):
            bound, inside = _name_of(node.iter, node.target, file), [it.test for it in _ifs(node)]
        elif isinstance(node, ast.comprehension):
            bound, inside = _name_of(node.iter, node.target, file), node.ifs
        else:
            continue
        for test in inside if bound else ():
            texts = tuple(_texts(test, bound, file))
            if texts:
                found.append(Test(Spot(file, test.lineno), texts))
    return tuple(found)


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield all parts of a function or file, without the functions and classes in it."""
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node
            yield from _own(node)


def _ifs(loop: ast.For) -> Iterator[ast.If | ast.IfExp]:
    return (node for part in loop.body for node in ast.walk(part) if isinstance(node, ast.If | ast.IfExp))


def _name_of(iterated: ast.expr, target: ast.expr, file: str) -> str:
    """Return the variable that a loop binds to names of a model, or nothing."""
    source = ast.unparse(iterated)
    if isinstance(iterated, ast.Name | ast.Attribute | ast.Call) and not any(it in source for it in _NAMES):
        plain = (
            iterated.func.value if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Attribute) else None
        )
        source = _source_of(Spot(file, iterated.lineno), ast.unparse(plain if plain is not None else iterated))
    if not any(it in source for it in _NAMES) or not isinstance(target, ast.Tuple) or not target.elts:
        return ""
    if "recurse=False" in source:  # the names within one module, as "weight": no parameter of a model is called that
        return ""
    first = target.elts[0]
    return first.id if isinstance(first, ast.Name) else ""


def _source_of(spot: Spot, name: str) -> str:
    value = assigned_value(spot, name)
    return ast.unparse(value) if value is not None else ""


def _texts(test: ast.expr, bound: str, file: str) -> Iterator[Text]:
    """Yield the texts that a condition looks for in the name bound to a variable."""
    loops = {
        part.target.id: part.iter
        for part in ast.walk(test)
        if isinstance(part, ast.comprehension) and isinstance(part.target, ast.Name)
    }
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            one, other = node.left, node.comparators[0]
            if isinstance(node.ops[0], ast.In | ast.NotIn) and _is(other, bound):
                yield from _known(one, "in", loops, file)
            elif isinstance(node.ops[0], ast.Eq) and (_is(one, bound) or _is(other, bound)):
                yield from _known(other if _is(one, bound) else one, "equals", loops, file)
            continue
        function = node.func if isinstance(node, ast.Call) and len(node.args) == 1 else None
        if isinstance(function, ast.Attribute) and function.attr in _ENDS and _is(function.value, bound):
            yield from _known(node.args[0], function.attr, loops, file)  # type: ignore[attr-defined]


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _known(node: ast.expr, how: str, loops: dict[str, ast.expr], file: str) -> Iterator[Text]:
    """Yield what an expression stands for: a text, or texts one after the other."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str) and node.value:
            yield Text(node.value, how, Spot(file, node.lineno))
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        for part in node.elts:
            yield from _known(part, how, {}, file)
    elif isinstance(node, ast.Name) and node.id in loops:
        yield from _known(loops[node.id], how, {}, file)
    elif isinstance(node, ast.Name | ast.Attribute):
        value = _value_of(Spot(file, node.lineno), ast.unparse(node))
        if isinstance(value, ast.Constant | ast.Tuple | ast.List | ast.Set):
            yield from _known(value, how, {}, file)


def _value_of(spot: Spot, name: str) -> ast.expr | None:
    """Return the expression that a name is assigned, or has as the default of an argument."""
    scope = function_around(spot)
    if isinstance(scope, ast.FunctionDef):
        plain = scope.args
        pairs = [*zip(reversed(plain.args), reversed(plain.defaults), strict=False)]
        pairs += [
            (it, value) for it, value in zip(plain.kwonlyargs, plain.kw_defaults, strict=True) if value is not None
        ]
        for argument, value in pairs:
            if argument.arg == name:
                return value
    return assigned_value(spot, name)
