"""Two things of the same places that are turned by two draws: each is flipped by chance, and not both at once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from course_utils.audit.erasing import by_chance, has_chance
from course_utils.audit.inplace import methods_called
from course_utils.audit.lines import Spot
from course_utils.audit.turning import TURNS, callees, is_backwards, turns
from course_utils.explain.source import applied_to, called, names_of

# Words of a function that draws once for both: a seed that is set anew, or parameters that are handed on.
_ONCE = re.compile(r"seed|set_?state|rng_state|get_params|replay|additional_targets|fork_rng|deepcopy|get_state", re.I)
_PLAIN = frozenset({"torch", "np", "numpy", "F", "TF", "T", "functional", "self", "math", "random", "transforms"})
_CASTS = frozenset({"clone", "copy", "float", "contiguous", "numpy", "from_numpy", "as_tensor", "tensor", "long"})


class Drawn(NamedTuple):
    """Something that is turned by chance: its text, the line, what the line binds, and the draws that decide."""

    thing: str
    line: int
    bound: frozenset[str]
    draw: str
    node: ast.AST


class Pair(NamedTuple):
    """Two things that are turned by draws of their own, and the line that turns the second one."""

    spot: Spot
    first: Drawn
    second: Drawn


def drawn_apart(scope: ast.AST, file: str, known: Mapping[str, Any]) -> Iterator[Pair]:
    """Yield the pairs of things in a scope that are turned by chance, and share no draw."""
    if _ONCE.search(ast.unparse(scope)):
        return
    found = list(_drawn(scope, file, known))
    things = dict.fromkeys(it.thing for it in found)
    by_thing = {thing: [it for it in found if it.thing == thing] for thing in things}
    for at, one in enumerate(things):
        for other in list(things)[at + 1 :]:
            shared = {it.draw for it in by_thing[one]} & {it.draw for it in by_thing[other]}
            if not shared and not _origins(scope, one) & _origins(scope, other):
                yield Pair(Spot(file, by_thing[other][0].line), by_thing[one][0], by_thing[other][0])


def _origins(scope: ast.AST, thing: str) -> set[str]:
    """Return the texts that something was read from, without indices: two views of one image have the same."""
    found = {thing}
    for node in ast.walk(scope):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            pairs = [(target, node.value)]  # type: ignore[attr-defined]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):  # type: ignore[attr-defined]
                pairs = list(zip(target.elts, node.value.elts, strict=False))  # type: ignore[attr-defined]
            for to, value in pairs:
                if ast.unparse(to) == thing and not isinstance(value, ast.Call | ast.IfExp):
                    found.add(re.sub(r"\[(\w+|\d+)\]$", "", ast.unparse(value)))
                elif ast.unparse(to) == thing and isinstance(value, ast.Call) and called(value) in _CASTS:
                    found |= {re.sub(r"\.\w+\(\)$|\[\w+\]", "", ast.unparse(value))}
    return found


def _drawn(scope: ast.AST, file: str, known: Mapping[str, Any]) -> Iterator[Drawn]:
    chance = by_chance(list(ast.walk(scope)))
    body = [scope.body] if isinstance(scope, ast.Lambda) else scope.body  # type: ignore[attr-defined]
    yield from _within(body, file, known, chance, "", frozenset())


def _within(
    nodes: list[Any], file: str, known: Mapping[str, Any], chance: set[str], draw: str, bound: frozenset[str]
) -> Iterator[Drawn]:
    """Yield what is turned in some code, under the draw that decides over it."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Assign):
            to, value = node.targets[0], node.value
            if isinstance(to, ast.Tuple) and isinstance(value, ast.Tuple) and len(to.elts) == len(value.elts):
                for name, part in zip(to.elts, value.elts, strict=True):
                    yield from _within([part], file, known, chance, draw, frozenset(names_of(name)))
                continue
            bound = frozenset(name for it in node.targets for name in names_of(it))
        if isinstance(node, ast.If | ast.IfExp):
            own = _draw_of(node.test, chance)
            inner = [*_listed(node.body), *_listed(node.orelse)]
            yield from _within(inner, file, known, chance, draw or own, bound)
            continue
        if isinstance(node, ast.ListComp | ast.GeneratorExp) and (each := list(_each(node, file, known))):
            yield from (it._replace(bound=bound) for it in each)
            continue
        found = _turned(node, file, known, chance, draw)
        if found is not None:
            yield found._replace(bound=bound)
        yield from _within(list(ast.iter_child_nodes(node)), file, known, chance, draw, bound)


def _listed(part: Any) -> list[Any]:
    return part if isinstance(part, list) else [part]


def _draw_of(test: ast.expr, chance: set[str]) -> str:
    """Return what tells one draw from another: the names that hold it, or the place where it is made."""
    names = sorted(names_of(test) & chance)
    return " ".join(names) if names else f"line {test.lineno}, {test.col_offset}" if has_chance(test, set()) else ""


def _turned(node: ast.AST, file: str, known: Mapping[str, Any], chance: set[str], draw: str) -> Drawn | None:
    if isinstance(node, ast.Subscript) and draw and is_backwards(node.slice):
        return _found(node.value, node, draw)
    if not isinstance(node, ast.Call):
        return None
    if TURNS.match(called(node)) and not list(callees(node, file, known)):
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        free = owner is None or ast.unparse(owner) in _PLAIN
        given = next(iter(node.args), None) if free else owner
        others = node.args[1:] if free else node.args
        own = draw or next((it for part in others if (it := _draw_of(part, chance))), "")
        return _found(given, node, own) if given is not None and own else None
    # A function that draws by itself draws anew for each call. Further arguments may say what was drawn.
    alone = bool(node.args) and not node.keywords and not any(names_of(it) for it in node.args[1:])
    if alone and _draws_inside(node, file, known):
        return _found(node.args[0], node, draw or f"call {node.lineno}, {node.col_offset}")
    return None


def _found(given: ast.expr, node: ast.expr, draw: str) -> Drawn | None:
    while isinstance(given, ast.Call) and called(given) in _CASTS:
        inner = applied_to(given, _PLAIN)
        if inner is None:
            break
        given = inner
    if not isinstance(given, ast.Name | ast.Attribute | ast.Subscript):
        return None
    return Drawn(ast.unparse(given), node.lineno, frozenset(), draw, node)


def _each(node: ast.ListComp | ast.GeneratorExp, file: str, known: Mapping[str, Any]) -> Iterator[Drawn]:
    """Yield the parts of a tuple that a comprehension turns one by one, each by a draw of its own."""
    loop = node.generators[0]
    if len(node.generators) > 1 or not isinstance(loop.iter, ast.Tuple | ast.List):
        return
    for call in ast.walk(node.elt):
        if not isinstance(call, ast.Call) or len(call.args) != 1:
            continue
        if ast.unparse(call.args[0]) == ast.unparse(loop.target) and _draws_inside(call, file, known):
            for at, it in enumerate(loop.iter.elts):
                yield Drawn(ast.unparse(it), node.lineno, frozenset(), f"{at} of {node.lineno}", node)


def _draws_inside(call: ast.Call, file: str, known: Mapping[str, Any]) -> bool:
    """Say whether what a call runs turns what it is given by a draw that it makes there."""
    value = known.get(ast.unparse(call.func))
    functions = list(callees(call, file, known))
    for part in getattr(value, "transforms", None) or ():
        functions += methods_called(part)
    for function, source in functions:
        text = ast.unparse(function)
        if not _ONCE.search(text) and any(it.chance for it in turns(function, source, known)):
            return True
    return False
