"""Running an engine in stage 1, `record`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.checks.data import Observation, Raised, type_name
from course_utils.checks.observers.lesson_11_build_your_own.engines import (
    Engine,
    Look,
    attempt,
    behind,
    numbers,
    observer,
)
from course_utils.checks.scenes.lesson_11_build_your_own.arrays import GIVEN, LEFT, ON_THREE_AXES, RIGHT, cube
from course_utils.checks.scenes.lesson_11_build_your_own.expressions import Expression, arrays, run

PARTS = (
    *("engine.tensor", "t.numpy()", "t.shape", "t.requires_grad", "t.grad_fn", "t + t", "t - t", "t * t", "t @ t"),
    *("t.exp()", "t.log()", "t.relu()", "t.sum()", "t.reshape()", "t[index]"),
)


def leaves_of(engine: Engine, expression: Expression) -> list[Any]:
    """Return the leaves of an expression, as tensors of an engine."""
    flags = expression["flags"]
    return [engine.tensor(a, requires_grad=flag) for a, flag in zip(arrays(expression), flags, strict=True)]


def _recorded(engine: Engine, expression: Expression) -> Observation:
    leaves = leaves_of(engine, expression)
    values = run(expression, leaves)
    nodes, found = behind(values[-1])
    known = {id(one) for one in (*nodes, *found)}
    steps = values[len(leaves) :]
    return {
        "values": [numbers(value) for value in steps],
        "flags": [bool(value.requires_grad) for value in steps],
        "made": [value.grad_fn is not None for value in steps],
        "reached": [id(leaf) in known for leaf in leaves] + [id(value.grad_fn) in known for value in steps],
    }


def _flags(engine: Engine) -> Observation:
    x, c = engine.tensor([1.0, 2.0], requires_grad=True), engine.tensor([3.0, 4.0])
    made = {"leaf * constant": x * c, "constant * leaf": c * x, "constant * constant": c * c, "2 * leaf": 2 * x}
    made |= {"leaf[0]": x[0], "leaf.reshape((2, 1))": x.reshape((2, 1))}
    made |= {"engine.tensor(array, requires_grad=True)": x, "engine.tensor(array)": c}
    return {name: [bool(tensor.requires_grad), tensor.grad_fn is not None] for name, tensor in made.items()}


def _shared(engine: Engine) -> Observation:
    x = engine.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    z = y * y
    product = x * engine.tensor([3.0, 4.0])
    made = {"x.exp()": y, "y * y": z, "x * constant": product, "y * y + x": z + x, "y + y": y + y}
    without = [name for name, result in made.items() if result.grad_fn is None]
    if without:
        return {"without": without}
    nodes, leaves = behind(made["y * y + x"])
    entries = list(product.grad_fn.inputs)
    own, doubled = y.grad_fn, made["y + y"].grad_fn.inputs
    return {
        "doubled": [entry is own for entry in doubled] == [True, True],
        "same": y.grad_fn is y.grad_fn,
        "entries": len(z.grad_fn.inputs),
        "both": all(entry is y.grad_fn for entry in z.grad_fn.inputs),
        "found": any(node is y.grad_fn for node in nodes),
        "leaves": len(leaves),
        "leaf": any(leaf is x for leaf in leaves),
        "constant": len(entries) == 2 and entries[1] is None,
        "named": all(isinstance(node.name, str) for node in nodes),
        "turned": _turned(engine),
    }


def _turned(engine: Engine) -> list[str]:
    """Return the operations of two tensors whose node has its entries in another order than they stand in."""
    t, u = (engine.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True) for _ in range(2))
    made = {"t + u": t + u, "t - u": t - u, "t * u": t * u, "t @ u": t @ u}
    found = {name: list(result.grad_fn.inputs) for name, result in made.items() if result.grad_fn is not None}
    return [name for name, entries in found.items() if len(entries) == 2 and entries[0] is u and entries[1] is t]


def _copied(engine: Engine, flag: bool) -> list[float]:
    given = np.array([1.5, 2.5])
    x = engine.tensor(given, flag)
    given[0] = 7.0
    return [float(number) for number in x.numpy()]


def _made(engine: Engine) -> Observation:
    return {name: attempt(lambda g=given: numbers(engine.tensor(g))) for name, given in GIVEN.items()}  # type: ignore[misc]


def _assigned(engine: Engine) -> str:
    """Write to a leaf, to a result and to a constant."""
    leaf = engine.tensor([1.5, 2.5], requires_grad=True)
    ended = [attempt(lambda t=t: _write(t)) for t in (leaf, leaf * 1.0, engine.tensor([1.5, 2.5]))]  # type: ignore[misc]
    return "raised" if all(isinstance(it, Raised) for it in ended) else "no error"


def _write(tensor: Any) -> None:
    tensor[0] = 7.0


def _in_place(engine: Engine) -> dict[str, list[str]]:
    """Return which operators that assign change the tensor that was there, and of which kinds of tensors.

    `t += u` is to run. The others may be refused, as what would be written in place.
    """

    def refusable(assign: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        return lambda t, u: attempt(lambda: assign(t, u))

    ways = {"t += u": operator.iadd, "t -= u": refusable(operator.isub), "t *= u": refusable(operator.imul)}
    found: dict[str, list[str]] = {}
    for name, assign in ways.items():
        leaf = engine.tensor([1.5, 2.5], requires_grad=True)
        made = {"a result": leaf * 1.0, "a leaf": leaf, "a tensor that needs no gradient": engine.tensor([1.5, 2.5])}
        for before in made.values():
            assign(before, engine.tensor([2.0, 2.0]))
        kinds = [kind for kind, it in made.items() if [float(number) for number in it.numpy()] != [1.5, 2.5]]
        if kinds:
            found[name] = kinds
    return found


def _numbers(engine: Engine) -> Observation:
    made: dict[str, Callable[[Any], Any]] = {
        "1 - x": lambda x: 1 - x,
        "3 + x": lambda x: 3 + x,
        "2 * x": lambda x: 2 * x,
        "x - 1": lambda x: x - 1,
        "x + 3": lambda x: x + 3,
        "x * 2": lambda x: x * 2,
    }
    return {name: attempt(lambda f=f: numbers(f(engine.tensor([0.5, 2.5])))) for name, f in made.items()}  # type: ignore[misc]


def _beside_arrays(engine: Engine) -> Observation:
    made: dict[str, Callable[[Any, Any], Any]] = {
        "x + array": lambda x, array: x + array,
        "x - array": lambda x, array: x - array,
        "x * array": lambda x, array: x * array,
        "x @ array": lambda x, array: x @ array,
    }
    return {name: attempt(lambda f=f: _beside(engine, f)) for name, f in made.items()}  # type: ignore[misc]


def _beside(engine: Engine, operation: Callable[[Any, Any], Any]) -> list[Any]:
    """Return what an operation gives for a leaf and an array on its right, and whether that has a graph."""
    result = operation(engine.tensor(LEFT, requires_grad=True), np.array(RIGHT))
    return [numbers(result), result.grad_fn is not None]


def _as_numpy(engine: Engine) -> Observation:
    """Return what `sum`, `reshape` and an index give for a tensor with three axes."""
    return {name: attempt(lambda f=f: numbers(f(engine.tensor(cube())))) for name, f in ON_THREE_AXES.items()}  # type: ignore[misc]


def _shape(engine: Engine) -> str:
    shape = engine.tensor(np.ones((2, 3))).shape
    return str(shape) if isinstance(shape, tuple | list) else f"of type {type_name(shape)}"


def _own_array(engine: Engine) -> bool:
    x = engine.tensor([1.5, 2.5])
    return bool(np.shares_memory(x.numpy(), x.numpy()))


def _entries(engine: Engine) -> list[str]:
    y = engine.tensor([1.0, 2.0], requires_grad=True).exp()
    kinds = {id(y): "operand", id(y.grad_fn): "node"}  # a result that is its own node is a node
    return [kinds.get(id(entry), "another") for entry in (y * y).grad_fn.inputs]


def look(engine: Engine, given: dict[str, Any]) -> Observation:
    return {
        "flags": attempt(lambda: _flags(engine)),
        "shared": attempt(lambda: _shared(engine)),
        "copied": attempt(lambda: _copied(engine, True)),
        "constant copied": attempt(lambda: _copied(engine, False)),
        "made": _made(engine),
        "assigned": attempt(lambda: _assigned(engine)),
        "in place": attempt(lambda: _in_place(engine)),
        "numbers": _numbers(engine),
        "beside": _beside_arrays(engine),
        "as in NumPy": _as_numpy(engine),
        "shape": attempt(lambda: _shape(engine)),
        "own array": attempt(lambda: _own_array(engine)),
        "entries": attempt(lambda: _entries(engine)),
        "random": [attempt(lambda e=e: _recorded(engine, e)) for e in given["expressions"]],  # type: ignore[misc]
    }


LOOK = Look(PARTS, look)
observe = observer(record=LOOK)
