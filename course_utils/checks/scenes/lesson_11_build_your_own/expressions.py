"""Random expressions, as plain data that runs on PyTorch's tensors as on those of a learner's engine."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

# {"shapes": of the leaves, "numbers": of each, in a row, "flags": which require a gradient, "steps": [name, ...]}
# A step names earlier values by number: the leaves come first, then the results.
Expression: TypeAlias = dict[str, Any]

_SHAPES = ((2, 3), (3, 2), (3,), (2, 1), (1, 3), (), (3, 3))
_LIMIT = 8.0  # values stay below, so that gradients stay comparable

# What each step does, and how it is written.
_DONE: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "matmul": lambda a, b: a @ b,
    "exp": lambda a: a.exp(),
    "log": lambda a: a.log(),
    "relu": lambda a: a.relu(),
    "add number": lambda a, number: a + number,
    "times number": lambda a, number: number * a,
    "from number": lambda a, number: number - a,
    "sum": lambda a, axis, keepdims: a.sum(axis=axis, keepdims=keepdims),
    "reshape": lambda a, shape: a.reshape(tuple(shape)),
    "pick": lambda a, kind, index: a[_index(kind, index)],
}
_WRITTEN = {
    "add": "{} + {}",
    "subtract": "{} - {}",
    "multiply": "{} * {}",
    "matmul": "{} @ {}",
    "exp": "{}.exp()",
    "log": "{}.log()",
    "relu": "{}.relu()",
    "add number": "{} + {}",
    "times number": "{1} * {0}",
    "from number": "{1} - {0}",
    "sum": "{}.sum(axis={}, keepdims={})",
    "reshape": "{}.reshape({})",
    "pick": "{}[{}]",
}
_CHOICE = (*_DONE, "multiply", "add", "multiply", *["matmul"] * 4, "log", "log", "log", "exp", "relu", "relu")
TWO = ("add", "subtract", "multiply", "matmul")


def random_expressions(seed: int, count: int, scalar: bool = True) -> list[Expression]:
    """Return `count` expressions with shared parts, joins of unequal depth, broadcasting and reuse.

    With `scalar` each ends in one number, on which every result depends; without, in a result of any shape.
    """
    draw = random.Random(seed)
    return [_expression(draw, scalar) for _ in range(count)]


def operands(step: Sequence[Any]) -> tuple[int, ...]:
    """Return the numbers of the values that a step takes."""
    return tuple(step[1:3]) if step[0] in TWO else (step[1],)


def run(expression: Expression, leaves: Sequence[Any]) -> list[Any]:
    """Return all values of an expression, the leaves first and its result last."""
    values = list(leaves)
    for name, *given in expression["steps"]:
        count = 2 if name in TWO else 1
        values.append(_DONE[name](*(values[n] for n in given[:count]), *given[count:]))
    return values


def arrays(expression: Expression) -> list[np.ndarray[Any, Any]]:
    """Return the numbers of the leaves, in new arrays of float64."""
    return [
        np.array(numbers, dtype=np.float64).reshape(shape)
        for numbers, shape in zip(expression["numbers"], expression["shapes"], strict=True)
    ]


def written(expression: Expression) -> str:
    """Return an expression as code, a line for each step, to stand in a message."""
    names = [*"abcdefgh"[: len(expression["shapes"])]]
    facts = [
        f"{name}: {'shape ' + str(tuple(shape)) if shape else 'one number'}{'' if flag else ', constant'}"
        for name, shape, flag in zip(names, expression["shapes"], expression["flags"], strict=True)
    ]
    lines = []
    for number, (name, *given) in enumerate(expression["steps"], 1):
        count = 2 if name in TWO else 1
        rest = [_shown(name, given)] if name == "pick" else given[count:]
        if name == "reshape":
            rest = [tuple(given[1])]
        names.append(f"t{number}")
        lines.append(f"t{number} = " + _WRITTEN[name].format(*(names[n] for n in given[:count]), *rest))
    return "\n".join([f"    {line}" for line in ("; ".join(facts), *lines)])


def _shown(name: str, given: list[Any]) -> str:
    index = _index(*given[1:])
    return ", ".join(map(str, index)) if isinstance(index, tuple) else str(index).replace("slice(1, None, None)", "1:")


def _index(kind: str, index: Any) -> Any:
    return {"slice": slice(1, None), "pairs": tuple(index) if isinstance(index, list) else ()}.get(kind, index)


def _expression(draw: random.Random, scalar: bool) -> Expression:
    shapes = [list(draw.choice(_SHAPES)) for _ in range(draw.randint(2, 4))]
    numbers = [
        [round(draw.uniform(0.3, 1.7) * draw.choice((1, 1, -1)), 3) for _ in range(int(np.prod(shape)))]
        for shape in shapes
    ]
    flags = [True, *(draw.random() < 0.75 for _ in shapes[1:])]
    found: Expression = {"shapes": shapes, "numbers": numbers, "flags": flags, "steps": []}
    values: list[Any] = [_Array(array) for array in arrays(found)]
    needs = list(flags)
    for _ in range(draw.randint(3, 7)):
        step = _step(draw, values)
        if step is not None:
            found["steps"].append(step)
            values.append(_value(step, values))
            needs.append(any(needs[n] for n in operands(step)))
    if scalar:
        _joined(found)
    return found if any(needs[len(shapes) :]) and (scalar or needs[-1]) else _expression(draw, scalar)


def _joined(found: Expression) -> None:
    """Add up the sums of all results that no step has used yet."""
    leaves, steps = len(found["shapes"]), found["steps"]
    used = {n for step in steps for n in operands(step)}
    total = None
    for n in [n for n in range(leaves, leaves + len(steps)) if n not in used]:
        steps.append(["sum", n, None, False])
        if total is not None:
            steps.append(["add", leaves + len(steps) - 1, total])
        total = leaves + len(steps) - 1


def _step(draw: random.Random, values: list[Any]) -> list[Any] | None:
    """Return a random step that keeps numbers moderate and away from where no derivative exists."""
    for _ in range(30):
        a = len(values) - 1 - min(int(draw.expovariate(0.7)), len(values) - 1)
        b = draw.randrange(len(values))
        x, shape = values[a], values[a].shape
        name = draw.choice(_CHOICE)
        step: list[Any] = [name, a]
        if name in TWO:
            step.append(b)
        elif name.endswith("number"):
            step.append(round(draw.uniform(0.4, 1.6), 3))
        elif name == "sum":
            step += [draw.choice([None, *range(-len(shape), len(shape))]), draw.random() < 0.5]
        elif name == "reshape":
            sizes = [size for size in (1, 2, 3, 6, 9) if x.size % size == 0]
            size = draw.choice(sizes)
            step.append([size, x.size // size])
        elif name == "pick":
            if not shape or shape[0] < 2:
                continue
            rows = [draw.randrange(shape[0]) for _ in range(3)]
            pairs = [rows, [draw.randrange(shape[-1]) for _ in range(3)]] if len(shape) == 2 else [rows]
            step += draw.choice([["row", rows[0]], ["slice", None], ["rows", rows], ["pairs", pairs]])
        if name == "matmul" and not (len(shape) == 2 == values[b].ndim):
            continue
        if (name == "log" and x.min() < 0.2) or (name == "exp" and x.max() > 2):
            continue
        if name == "relu" and (abs(x).min() < 0.01 or not (x.min() < 0 < x.max())):
            continue
        try:
            y = _value(step, values)
        except ValueError:  # shapes that do not fit
            continue
        if y.size and y.size <= 12 and abs(y).max() < _LIMIT:
            return step
    return None


def _value(step: list[Any], values: list[Any]) -> _Array:
    count = len(operands(step))
    return _Array(np.asarray(_DONE[step[0]](*(values[n] for n in operands(step)), *step[1 + count :])))


class _Array(np.ndarray):
    """NumPy's array, with the methods that expressions call."""

    def __new__(cls, array: np.ndarray[Any, Any]) -> _Array:
        return array.view(cls)

    def __array_finalize__(self, parent: Any) -> None:
        pass

    def exp(self) -> Any:
        return np.exp(self)

    def log(self) -> Any:
        return np.log(self)

    def relu(self) -> Any:
        return np.maximum(self, 0)
