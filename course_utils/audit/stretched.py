"""Evaluations that compare a column with a row: each prediction with every target, and not with its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parts
from course_utils.audit.outputs import Bound, Values, output_behind, own_values, values_in
from course_utils.audit.reading import Scopes, Seen, Shape, Told
from course_utils.audit.source import no_grad_around
from course_utils.explain.source import applied_to, called, names_of

_LIBRARIES = frozenset({"torch", "F", "np", "numpy", "nn", "functional", "nn.functional", "torch.nn.functional"})
_KEEPS = frozenset(
    {
        *(
            "float",
            "long",
            "int",
            "bool",
            "double",
            "to",
            "cpu",
            "cuda",
            "numpy",
            "detach",
            "clone",
            "sigmoid",
            "round",
        ),
        *("sign", "contiguous", "type", "astype", "byte", "half", "tanh", "exp", "asarray", "array", "gt", "ge", "lt"),
        *("le", "rint", "from_numpy", "as_tensor", "clamp", "abs", "logical_not", "expit", "relu", "copy"),
    }
)
_FLAT = frozenset({"flatten", "ravel"})
_LOSSES = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"})
_DEEP, _BOUND = 8, 4


class _Column(NamedTuple):
    """How many axes an expression has, and whether the last of two has one number; what of it a model gave."""

    axes: int
    single: bool
    rows: int
    by_model: bool = False


class _Place(NamedTuple):
    file: str
    values: Values
    seen: Seen
    function: str  # where its names stand
    functions: dict[int, str]  # by the identity of a function's own values


def stretched(scopes: Scopes, seen: Seen) -> Iterator[Told]:
    """Yield the comparisons of a model's column with a row of targets."""
    functions = {id(own_values(scope)): _name(scope) for _, scope in scopes}
    for file, scope in scopes:
        place = _Place(file, values_in(scope, scopes), seen, _name(scope), functions)
        for node in parts(scope):
            for one, other in _compared(node, file):
                mine, theirs = _axes(one, place), _axes(other, place)
                if mine is not None and theirs is not None and _is_apart(mine, theirs):
                    yield _told(Spot(file, node.lineno), theirs.rows)  # type: ignore[attr-defined]


def _name(scope: ast.AST) -> str:
    return getattr(scope, "name", "<module>")


def _is_apart(mine: _Column, theirs: _Column) -> bool:
    return mine.axes == 2 and mine.single and mine.by_model and theirs.axes == 1 and theirs.rows > 1


def _compared(node: ast.AST, file: str) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield both sides of a comparison, each as the first once."""
    sides: tuple[ast.expr, ...] = ()
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.NotEq):
        sides = node.left, node.comparators[0]
    elif isinstance(node, ast.Call) and called(node) in ("eq", "ne"):
        given = applied_to(node, _LIBRARIES)
        sides = (given, node.args[-1]) if given is not None and node.args and given is not node.args[-1] else ()
    elif isinstance(node, ast.Call) and called(node) in _REDUCED and no_grad_around(Spot(file, node.lineno)):
        sides = _difference(node)
    elif isinstance(node, ast.Call) and called(node) in _LOSSES and no_grad_around(Spot(file, node.lineno)):
        sides = tuple(node.args[:2]) if len(node.args) > 1 else ()
    if len(sides) == 2:
        yield sides[0], sides[1]
        yield sides[1], sides[0]


_REDUCED = frozenset({"mean", "sum", "norm", "max"})


def _difference(node: ast.Call) -> tuple[ast.expr, ...]:
    """Return both sides of the difference whose size a reduction takes: `((a - b) ** 2).mean()`."""
    given: ast.expr | None = applied_to(node, _LIBRARIES)
    while given is not None:
        if isinstance(given, ast.BinOp) and isinstance(given.op, ast.Sub):
            return given.left, given.right
        if isinstance(given, ast.BinOp) and isinstance(given.op, ast.Pow):
            given = given.left
        elif isinstance(given, ast.Call) and called(given) in ("abs", "pow", "square"):
            given = applied_to(given, _LIBRARIES)
        else:
            break
    return ()


def _axes(node: ast.expr, place: _Place, deep: int = _DEEP) -> _Column | None:
    """Return the axes of an expression; None where they are not known for sure."""
    if not deep:
        return None
    if isinstance(node, ast.Name):
        return _of_name(node, place, deep)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.comparators[0], ast.Constant):
        return _axes(node.left, place, deep)
    if isinstance(node, ast.Subscript):
        return _indexed(node.slice, _axes(node.value, place, deep))
    if not isinstance(node, ast.Call):
        return None
    asked = place.seen.at(place.file, node) if isinstance(node.func, ast.Name | ast.Attribute) else None
    name = called(node)
    inside = applied_to(node, _LIBRARIES)
    if name in _KEEPS:
        return _axes(inside, place, deep) if inside is not None else None
    if name in _FLAT and not _rest(node, inside):
        found = _axes(inside, place, deep) if inside is not None else None
        return found._replace(axes=1) if found is not None else None
    if name in _SHAPED:
        return (
            _shaped(name, [ast.unparse(it) for it in _rest(node, inside)], _axes(inside, place, deep), node)
            if (inside is not None)
            else None
        )
    gave = asked.gave if asked is not None else set()
    output = output_behind(node, place.values, place.file)
    return _column(gave, True) if output is not None and output.made is node else None


def _of_name(node: ast.Name, place: _Place, deep: int) -> _Column | None:
    given = place.values.get(node.id, [])
    own = [it for it in given if it is not None]
    if own and len(own) == len(given) <= _BOUND:
        found = {_axes(it.value, _elsewhere(place, it), deep - 1) for it in own}
        if len(found) == 1 and None not in found:
            return found.pop()
    mine = [it.value for it in own if place.functions.get(id(it.values), place.function) == place.function]
    if any(not _keeps(it) for it in mine if node.id in names_of(it)):
        return None  # it changes its shape, and nobody knows when it was looked at
    return _column(place.seen.shapes_of(place.file, node.id, place.function), False)


def _elsewhere(place: _Place, bound: Bound) -> _Place:
    """Return where the names count that a value is written with."""
    return place._replace(values=bound.values, function=place.functions.get(id(bound.values), ""))


def _keeps(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and called(value) in _KEEPS


def _column(shapes: set[Shape], by_model: bool) -> _Column | None:
    """Return what several shapes have in common; None where they differ."""
    kinds = {(it.axes, it.axes > 1 and it.last == 1) for it in shapes}
    if len(kinds) != 1:
        return None
    axes, single = next(iter(kinds))
    return _Column(axes, single, min(it.rows for it in shapes), by_model)


_SHAPED = frozenset({"squeeze", "unsqueeze", "view", "reshape", "argmax"})


def _rest(node: ast.Call, inside: ast.expr | None) -> list[ast.expr]:
    """Return what a call is given besides what it works on."""
    return [it for it in (*node.args, *(word.value for word in node.keywords)) if it is not inside]


def _shaped(name: str, given: list[str], found: _Column | None, node: ast.Call) -> _Column | None:
    if found is None:
        return None
    row, column = found._replace(axes=1, single=False), found._replace(axes=2, single=True)
    along = bool(given) and given[0] in ("1", "-1")
    if name == "squeeze" and found.axes == 2 and found.single and (along or not given):
        return row
    if name == "unsqueeze" and found.axes == 1 and along:
        return column
    if name in ("view", "reshape") and given in (["-1"], ["-1", "1"]):
        return row if given == ["-1"] else column
    if name == "argmax" and found.axes == 2 and along:
        keeps = any(it.arg == "keepdim" and ast.unparse(it.value) == "True" for it in node.keywords)
        return column if keeps else row
    return None


def _indexed(index: ast.expr, found: _Column | None) -> _Column | None:
    if found is None or isinstance(index, ast.Slice):
        return found
    given = index.elts if isinstance(index, ast.Tuple) else []
    if len(given) != 2 or not isinstance(given[0], ast.Slice):
        return None
    if found.axes == 2 and isinstance(given[1], ast.Constant) and isinstance(given[1].value, int):
        return found._replace(axes=1, single=False)
    if found.axes == 1 and ast.unparse(given[1]) in ("None", "np.newaxis"):
        return found._replace(axes=2, single=True)
    return None


def _told(spot: Spot, rows: int) -> Told:
    return Told(
        "metric-miscounted",
        spot,
        f"a column of predictions is compared with a row of targets: of {rows} rows that makes {rows * rows} pairs",
        "Shapes (N, 1) and (N,) are stretched to (N, N): each prediction is compared with every target. What comes out "
        "says how often two values occur, and not whether they belong together.",
        "predicted.squeeze(1) == target  # both of one shape",
    )
