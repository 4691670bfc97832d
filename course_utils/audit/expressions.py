"""What a line computes, as its source says: its factors, and the models that a loop takes in pairs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import functions_of
from course_utils.audit.source import around, assigned, blocks_of, function_around, statement
from course_utils.explain.source import called

_COPIES = frozenset({"deepcopy", "copy", "dict", "OrderedDict"})


def zipped_parameters(spot: Spot) -> Iterator[tuple[str, str]]:
    """Yield the names of the two models whose parameters the loops around a line take in pairs."""
    for node in around(spot):
        call = node.iter if isinstance(node, ast.For) else None
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "zip" and len(call.args) == 2:
            one, other = (ast.unparse(part) for part in call.args)
            if one.endswith(".parameters()") and other.endswith(".parameters()"):
                yield one.removesuffix(".parameters()"), other.removesuffix(".parameters()")


def loaded_from(spot: Spot) -> tuple[str, str] | None:
    """Return the names in `one.load_state_dict(other.state_dict())`, also of a copy of it, where that stands."""
    found = statement(spot)
    for node in ast.walk(found) if found is not None else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "load_state_dict":
            given = node.args[0] if node.args else None
            while isinstance(given, ast.Call) and called(given) in _COPIES and given.args:
                given = given.args[0]
            if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and called(given) == "state_dict":
                return ast.unparse(node.func.value), ast.unparse(given.func.value)
    return None


def cast_before(spot: Spot | None) -> Spot | None:
    """Return the last line before one, in its function, that casts a model to a smaller type and binds or drops it."""
    scope = function_around(spot) if spot is not None else None
    lines = []
    for node in ast.walk(scope) if scope is not None else ():
        value = node.value if isinstance(node, ast.Assign | ast.Expr) else None
        for call in ast.walk(value) if value is not None else ():
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and spot is not None:
                given = " ".join(ast.unparse(it) for it in (*call.args, *call.keywords))
                casts = call.func.attr in ("bfloat16", "half") or (
                    call.func.attr == "to" and re.search(r"dtype|bfloat16|float16|half", given) is not None
                )
                if casts and call.lineno < spot.line:
                    lines.append(call.lineno)
    return Spot(spot.file, max(lines)) if lines and spot is not None else None


def assigned_value(spot: Spot, name: str) -> ast.expr | None:
    """Return the expression that a name was assigned, as `assigned` finds the line; None where nothing assigns it.

    Of `a, b = f(x), g(y)` it is the name's own part.
    """
    made = assigned(spot, name)
    line = statement(made) if made is not None else None
    if not isinstance(line, ast.Assign):
        return None
    target, value = line.targets[0], line.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        own = [part for to, part in zip(target.elts, value.elts, strict=True) if ast.unparse(to) == name]
        return own[0] if own else value
    return value


def returned_by(spot: Spot, call: ast.expr) -> Iterator[ast.expr]:
    """Yield what a function of the same file returns, if `call` calls one, and what was assigned to names in that."""
    name = called(call)
    found = [it for it in functions_of(spot.file).get(name, ()) if isinstance(it, ast.FunctionDef) and it.name == name]
    for line in ast.walk(found[0]) if len(found) == 1 else ():
        if isinstance(line, ast.Return) and line.value is not None:
            yield line.value
            for part in ast.walk(line.value):
                value = assigned_value(Spot(spot.file, line.lineno), part.id) if isinstance(part, ast.Name) else None
                if value is not None:
                    yield value


def is_used_elsewhere(spot: Spot, name: str) -> bool:
    """Say whether the function around a line reads a name on other lines as well, or twice on this one."""
    scope = function_around(spot)
    parts = [part for part in ast.walk(scope) if isinstance(part, ast.Name) and part.id == name] if scope else []
    read = [part.lineno for part in parts if isinstance(part.ctx, ast.Load)]
    return any(line != spot.line for line in read) or len(read) > 1


def used_up(spot: Spot) -> Spot | None:
    """Return the line that made the iterator which a call at a line is given first: `params = model.parameters()`."""
    found = statement(spot)
    for node in ast.walk(found) if found is not None else ():
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Name | ast.Attribute):
            made = assigned(spot, ast.unparse(node.args[0]))
            line = statement(made) if made is not None else None
            value = line.value if isinstance(line, ast.Assign) else None
            text = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
            if (
                isinstance(value, ast.GeneratorExp)
                or text.endswith(".parameters")
                or text in ("filter", "map", "chain")
            ):
                return made
    return None


@lru_cache(maxsize=512)
def products(spot: Spot) -> tuple[tuple[str, bool], ...]:
    """Return the factors at a line, each with whether it is a difference: (returns - value, True)."""
    factors = factors_at(spot)
    return tuple((ast.unparse(it), isinstance(it, ast.BinOp) and isinstance(it.op, ast.Sub)) for it in factors)


def factors_at(spot: Spot) -> list[ast.expr]:
    """Return the factors of all products in the statement at a line."""
    found = statement(spot)
    return [
        part
        for node in (ast.walk(found) if found is not None and not blocks_of(found) else ())
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
        for part in (node.left, node.right)
    ]


def factors_of(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the factors of a product, also of products in it; anything else is its own only factor."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from (*factors_of(node.left), *factors_of(node.right))
    else:
        yield node


def given_to(spot: Spot, method: str) -> ast.expr | None:
    """Return what a method is given first in the statement at a line, if it is called once: `x` in `n.log_prob(x)`."""
    found = statement(spot)
    calls = [node for node in ast.walk(found) if isinstance(node, ast.Call)] if found and not blocks_of(found) else []
    given = [it.args[:1] for it in calls if isinstance(it.func, ast.Attribute) and it.func.attr == method]
    return given[0][0] if len(given) == 1 and given[0] else None


def gone_through(spot: Spot, name: str) -> str:
    """Return what the loops around a line go through under a name: `a` in `for x, y in zip(a, b)`, for `x`."""
    for loop in around(spot):
        if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Tuple):
            continue
        given = loop.iter.args if isinstance(loop.iter, ast.Call) else []
        for target, source in zip(loop.target.elts, given, strict=False):
            if ast.unparse(target) == name:
                return ast.unparse(source)
    return name
