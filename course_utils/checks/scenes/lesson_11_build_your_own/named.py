"""Small expressions with a name, each of which shows one thing that a pass may get wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course_utils.checks.scenes.lesson_11_build_your_own.expressions import Expression


def _of(shapes: list[list[int]], numbers: list[list[float]], *steps: list[Any], flags: Any = None) -> Expression:
    return {"shapes": shapes, "numbers": numbers, "flags": flags or [True] * len(shapes), "steps": list(steps)}


_THREE = [0.5, 1.25, 2.0]
_SIX = [0.5, 1.5, 0.75, 2.0, 1.25, 0.3]
_EIGHT = [*_SIX, 0.9, 1.1]


def _summed(first: int, *steps: list[Any]) -> list[list[Any]]:
    """Return steps, and those that add their results up. `first` is the number of the first one's result."""
    last = first + len(steps)
    return [*steps, ["add", first, first + 1], *(["add", last + n, first + n + 2] for n in range(len(steps) - 2))]


NAMED: dict[str, Expression] = {
    "a value used twice": _of([[3]], [_THREE], ["times number", 0, 2.0], ["times number", 0, 3.0], ["add", 1, 2]),
    "a square": _of([[3]], [_THREE], ["multiply", 0, 0]),
    "a join of unequal depth": _of(
        [[3]],
        [_THREE],
        *(["exp", 0], ["times number", 1, 0.5], ["log", 2], ["multiply", 3, 1], ["add", 1, 4], ["multiply", 1, 5]),
    ),
    # Who adds up in place writes into the gradient that was given, if one of the two operands' parts is that itself.
    "a shortcut around one operation": _of([[3]], [_THREE], ["exp", 0], ["times number", 1, 2.0], ["add", 1, 2]),
    "a shortcut that comes second": _of([[3]], [_THREE], ["exp", 0], ["times number", 1, 2.0], ["add", 2, 1]),
    "a number for all": _of([[2, 3], []], [_SIX, [1.5]], ["multiply", 0, 1]),
    "numbers of shape (1,) and (1, 1) for all": _of(
        [[2, 3], [1], [1, 1]], [_SIX, [1.5], [0.7]], ["multiply", 0, 1], ["add", 3, 2]
    ),
    "a row for all rows": _of([[2, 3], [3]], [_SIX, _THREE], ["add", 0, 1]),
    "three numbers beside one row of three": _of([[3], [1, 3]], [_THREE, [1.1, 0.2, 0.6]], ["multiply", 0, 1]),
    "a column for all columns": _of([[2, 1], [2, 3]], [[0.7, 1.9], _SIX], ["multiply", 0, 1]),
    "an index twice": _of([[3]], [_THREE], ["pick", 0, "rows", [0, 0, 2]]),
    "pairs of indices": _of([[2, 3]], [_SIX], ["pick", 0, "pairs", [[0, 1, 1], [2, 0, 0]]]),
    "a sum of columns": _of([[2, 3], [3]], [_SIX, _THREE], ["sum", 0, 0, False], ["multiply", 2, 1]),
    "a sum of columns, as many as rows": _of(
        [[3, 3], [3]], [[*_SIX, 0.9, 1.1, 0.4], _THREE], ["sum", 0, 0, False], ["multiply", 2, 1]
    ),
    "a sum of rows": _of([[3, 3], [3]], [[*_SIX, 0.9, 1.1, 0.4], _THREE], ["sum", 0, 1, False], ["multiply", 2, 1]),
    "a sum of rows that stay": _of([[3, 3]], [[*_SIX, 0.9, 1.1, 0.4]], ["sum", 0, 1, True], ["multiply", 0, 1]),
    "matmul": _of([[2, 3], [3, 2]], [_SIX, [0.4, 1.1, 0.6, 0.2, 0.8, 1.7]], ["matmul", 0, 1]),
    "relu": _of([[4]], [[-1.5, 0.5, 0.0, 2.0]], ["relu", 0]),
    "a difference": _of([[3], [3]], [_THREE, [1.1, 0.2, 0.6]], ["subtract", 0, 1]),
    "exp": _of([[3]], [_THREE], ["exp", 0]),
    "log": _of([[3]], [_THREE], ["log", 0]),
    "a reshape": _of([[2, 3]], [_SIX], ["reshape", 0, [3, 2]]),
    "a sum over the last of three axes": _of(
        [[2, 2, 2], [2]], [_EIGHT, [1.1, 0.4]], ["sum", 0, -1, False], ["multiply", 2, 1]
    ),
    "a sum over the second of three axes, which stays": _of(
        [[2, 2, 2]], [_EIGHT], ["sum", 0, -2, True], ["multiply", 0, 1]
    ),
    "an index from the end": _of([[3]], [_THREE], ["pick", 0, "rows", [-1, 0, -3]]),
    "the square of an index": _of([[3]], [_THREE], ["pick", 0, "rows", [0, 0, 2]], ["multiply", 1, 1]),
    "the square of a sum": _of([[2, 3]], [_SIX], ["sum", 0, 0, False], ["multiply", 1, 1]),
    "a constant": _of([[3], [3]], [_THREE, [1.1, 0.2, 0.6]], ["multiply", 0, 1], flags=[True, False]),
    # What arrives at a sum goes on to all summands: which of them write into it shows at the next of their kind.
    "a sum of pairs": _of(
        [[3], [3], [3]],
        [_THREE, [1.1, 0.2, 0.6], [1.5, -0.75, 0.5]],
        *(["subtract", 0, 1], ["subtract", 1, 0]),
        *_summed(
            5,
            *([name, *operands] for name in ("multiply", "subtract") for operands in ((0, 2), (2, 1), (0, 1), (1, 0))),
            *([name, leaf] for name in ("exp", "log") for leaf in (0, 1)),
            *([["relu", 3], ["relu", 4]]),
        ),
        flags=[True, True, False],
    ),
    "a leaf that is not used": _of([[3], [3]], [_THREE, [1.1, 0.2, 0.6]], ["exp", 0]),
}

# What each result's gradient begins with: uneven, and of both signs.
UPSTREAM = (0.5, -1.5, 2.5, -0.25, 1.75, -3.0, 0.75, 1.25, -0.6)


def everything(x: Any) -> Any:
    """Return one number that a leaf with two rows and columns reaches by every operation of an engine."""
    y = (x @ x * 0.1).exp() - 2.0 * x.log()
    z = y[[0, 1, 1]].relu() * y.sum(axis=0) + y.sum(axis=1, keepdims=True)[[1, 0, 1]]
    return z.reshape((6,)).sum()


def thrice(grad: Callable[..., Any], y: Any, x: Any) -> Any:
    """Return the third derivative of a number, by PyTorch's `grad` or by that of a learner's engine."""
    for _ in range(3):
        (g,) = grad(y, [x], create_graph=True)
        y = g.sum()
    return g


POSITIVE = [[0.5, 2.0], [1.25, 0.75]]  # a leaf for it
