"""What all stages see of a learner's engine: its parts, its graph, its numbers, and who else computes."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.checks.blame import raised_by_learner
from course_utils.checks.data import Array, Case, Observation, Other, Value, type_name
from course_utils.graph.own import is_leaf

Engine = Any  # an object of the learner's with the attributes that the lesson lists

# Packages that would do the engine's work. PyTorch is among them, and is seen in another way, too.
_OTHERS = ("torch", "jax", "autograd", "tensorflow", "keras", "tinygrad", "micrograd", "pytensor", "aesara", "casadi")
_DTYPES = ("float64", "float32", "float16", "int64", "int32", "bool")
_MOST_NODES = 5000


@dataclass(frozen=True)
class Look:
    """How a stage is observed: which parts of the engine it is about, and what is done with them.

    A part is named as a message names it: "engine.grad", "t.exp()", "t.backward(retain_graph)".
    """

    parts: tuple[str, ...]
    run: Callable[[Engine, dict[str, Any]], Observation]


def observer(**looks: Look) -> Callable[[object, Case], Observation]:
    """Return what observes a stage: in each case it looks at the stage that the case names."""

    def observe(answer: object, case: Case) -> Observation:
        look = looks[case.given["stage"]]
        absent = missing(answer, look.parts)
        if absent:
            return {"absent": absent}
        with _Torch() as used:
            before = attempt(lambda: _records(answer))
            seen = {"elsewhere": attempt(lambda: _others(answer)), **look.run(answer, case.given)}
            after = attempt(lambda: _records(answer))
        return {**seen, "torch": used.operations, "records": [before, after]}

    return observe


def attempt(scene: Callable[[], Any]) -> Any:
    """Return what a scene returns, or what it raised, as plain data: the other scenes go on."""
    try:
        return scene()
    except Exception as error:
        return raised_by_learner(error)


def missing(engine: Engine, parts: Sequence[str]) -> list[str]:
    """Return which parts an engine does not have."""
    if not hasattr(engine, "tensor"):
        return ["engine.tensor"]
    try:
        tensor = engine.tensor(np.ones((2, 2)), requires_grad=True)
    except Exception:  # it is there, and the scenes will tell how it fails
        return []
    absent = [part for part in parts if not _has(engine, tensor, part)]
    return [part for part in absent if part.partition("(")[0] not in absent or "(" not in part]


def _has(engine: Engine, tensor: Any, part: str) -> bool:
    owner, _, rest = part.partition(".")
    if not rest:
        return hasattr(tensor, _OPERATORS[part])
    name, _, keyword = rest.partition("(")
    found: Any = getattr(engine if owner == "engine" else tensor, name, _ABSENT)
    if found is _ABSENT or keyword in ("", ")"):
        return found is not _ABSENT
    try:
        parameters = inspect.signature(found).parameters
    except (TypeError, ValueError):
        return True
    return keyword[:-1] in parameters or any(it.kind is it.VAR_KEYWORD for it in parameters.values())


_ABSENT = object()
_OPERATORS = {
    "t + t": "__add__",
    "t - t": "__sub__",
    "t * t": "__mul__",
    "t @ t": "__matmul__",
    "t[index]": "__getitem__",
}


def numbers(value: Any) -> Value:
    """Return the numbers of a tensor of the learner's, or of an array; the name of its type where it has none."""
    if value is None:
        return None
    array = value.numpy() if hasattr(value, "numpy") else value
    if isinstance(array, np.ndarray | np.generic) and str(array.dtype) in _DTYPES:
        return Array(tuple(array.shape), str(array.dtype), array.tobytes())
    return Other(type_name(array))


def array_of(array: Array) -> np.ndarray[Any, Any]:
    """Return a new NumPy array with numbers that a case gives."""
    return np.frombuffer(array.data, dtype=array.dtype).reshape(array.shape).copy()


def behind(tensor: Any) -> tuple[list[Any], list[Any]]:
    """Return the nodes and the leaves behind a tensor, each once, found by `grad_fn` and `inputs`."""
    nodes: list[Any] = [tensor.grad_fn] if tensor.grad_fn is not None else []
    leaves: list[Any] = []
    seen = {id(node) for node in nodes}
    for node in nodes:
        for entry in node.inputs:
            if entry is None or id(entry) in seen:
                continue
            seen.add(id(entry))
            (leaves if is_leaf(entry) else nodes).append(entry)
        if len(nodes) > _MOST_NODES:
            break
    return nodes, leaves


@contextmanager
def overflows() -> Iterator[list[str]]:
    """Collect how often an operation of NumPy's overflows. Where one step of a pass must, this counts its runs."""
    seen: list[str] = []
    with np.errstate(all="ignore"), np.errstate(over="call", call=lambda kind, flag: seen.append(kind)):
        yield seen


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the garbage collector off in the body."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class _Torch(TorchDispatchMode):
    """Keeps the names of PyTorch's operations that run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if len(self.operations) < 5:
            self.operations.append(str(function))
        return function(*args, **(kwargs or {}))


def _records(engine: Engine) -> bool:
    x = engine.tensor([1.5, 2.5], requires_grad=True)
    return (x * x).grad_fn is not None


def _others(engine: Engine) -> list[str]:
    """Return the packages that compute gradients and run while the engine does."""
    found: dict[str, None] = {}

    def called(frame: Any, event: str, argument: Any) -> None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if event == "call" and package in _OTHERS:
            found[package] = None

    before = sys.getprofile()
    with uncollected():  # what is collected meanwhile may be PyTorch's, and ends by PyTorch's own code
        sys.setprofile(called)
        try:
            x = engine.tensor(np.array([[0.5, 1.5], [2.5, 0.7]]), requires_grad=True)
            y = ((x @ x).log() * x).exp().relu().sum()
            if hasattr(y, "backward"):
                y.backward()
        finally:
            sys.setprofile(before)
    return list(found)
