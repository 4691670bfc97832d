"""The loops that are running, and how many rounds their source plans."""

from __future__ import annotations

import ast
import weakref
from collections.abc import Callable, Iterator
from itertools import islice
from types import FrameType
from typing import Any

from course_utils.audit.lines import Spot, frames, names_in
from course_utils.audit.namings import is_held
from course_utils.audit.source import around, blocks_of, function_around, no_grad_around, tree_of
from course_utils.explain.source import called, names_of

GOES_ON = frozenset({"enumerate", "tqdm", "iter", "track"})  # these give what they are given, thing by thing
_COUNTS = frozenset({"range", "trange"})
_SUMS = {ast.Add: int.__add__, ast.Sub: int.__sub__, ast.Mult: int.__mul__}
_FRAMES = 4


def rounds() -> list[int | None]:
    """Return how often each loop around the running line goes round, the innermost first, through the callers.

    None stands for a loop that counts nothing, as one over batches, or whose count the source does not give.
    """
    found: list[int | None] = []
    for frame, _, loops in running(_FRAMES):
        known: dict[str, Any] | None = None
        for node in reversed(loops):
            if known is None:
                known = names_in(frame)
            found.append(_counted(node.iter, known) if isinstance(node, ast.For) else None)
    return found


def goes_through(node: ast.expr) -> ast.expr:
    """Return what a loop goes through, past `enumerate` and the like."""
    while isinstance(node, ast.Call) and called(node) in GOES_ON and node.args:
        node = node.args[0]
    return node


def running(most: int) -> Iterator[tuple[FrameType, Spot, list[ast.For | ast.While]]]:
    """Yield the learner's frames that are running, the innermost first, each with its line and the loops around that.

    The loops are those of `loops_at`; of more frames than `most`, the outer ones are left out.
    """
    for frame in islice(frames(), most):
        spot = Spot(frame.f_code.co_filename, frame.f_lineno)
        yield frame, spot, loops_at(spot)


def loops_at(spot: Spot) -> list[ast.For | ast.While]:
    """Return the loops around a line within its function, the outermost first."""
    nodes = around(spot)
    scopes = [at for at, node in enumerate(nodes) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = nodes[scopes[-1] if scopes else 0 :]
    return [node for node in inside if isinstance(node, ast.For | ast.While) and spot.line > node.lineno]


def is_before_loop(spot: Spot, within: Spot) -> bool:
    """Say whether a loop comes after a line, in its block, that calls the function in which another line stands."""
    function, nodes = function_around(within), around(spot)
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or function is function_around(spot):
        return False
    block = nodes[-2] if len(nodes) > 1 else tree_of(spot.file)
    if loops_at(spot) or block is None:
        return False
    later = (node for node in blocks_of(block) if node.lineno > spot.line)
    loops = [node for node in later if isinstance(node, ast.For | ast.While)]
    return any(called(part) == function.name for loop in loops for part in ast.walk(loop))


def length_of(iterated: ast.expr, known: dict[str, Any]) -> int | None:
    """Return how many rounds a loop makes: over a count, or over a name for a list or the like; None if not known."""
    value = value_of(iterated, known)
    return len(value) if isinstance(value, list | tuple | range) else _counted(iterated, known)


def _counted(iterated: ast.expr, known: dict[str, Any]) -> int | None:
    for node in ast.walk(iterated):
        if isinstance(node, ast.Call) and called(node) in _COUNTS:
            given = [_integer(part, known) for part in node.args]
            if given and all(value is not None for value in given) and len(given) <= 3 and given[2:] != [0]:
                return len(range(*given))  # type: ignore[arg-type]
    return None


def _integer(node: ast.expr, known: dict[str, Any]) -> int | None:
    """Return what an expression of names, attributes, keys and sums stands for, if it is an integer."""
    value = value_of(node, known)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def value_of(node: ast.expr, known: dict[str, Any]) -> Any:
    """Return what an expression of constants, names, attributes and keys stands for; None where that is not known."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = value_of(node.value, known)
        return vars(owner).get(node.attr) if hasattr(owner, "__dict__") else None
    if isinstance(node, ast.Subscript):
        owner, key = value_of(node.value, known), value_of(node.slice, known)
        return owner.get(key) if type(owner) is dict and isinstance(key, str) else None
    if isinstance(node, ast.BinOp) and type(node.op) in _SUMS:
        one, other = _integer(node.left, known), _integer(node.right, known)
        return None if one is None or other is None else _SUMS[type(node.op)](one, other)
    return None


def stands_in_evaluation(spot: Spot) -> bool:
    """Say whether the innermost loop around a line is one over batches in which nothing is recorded or trained."""
    loops = loops_at(spot)
    if not loops or not isinstance(loops[-1], ast.For):
        return False
    if no_grad_around(spot) is None and not any(map(is_held, names_of(loops[-1].iter))):
        return False
    text = "\n".join(map(ast.unparse, loops[-1].body))
    return "backward(" not in text and len(loops[-1].body) > 1


def referred(value: Any) -> Callable[[], Any]:
    """Return what gives a value back as long as it lives: a loop's targets are to die as without a watch."""
    try:
        return weakref.ref(value)
    except TypeError:
        return (lambda: value) if isinstance(value, int | str) else _unknown


def _unknown() -> None: ...
