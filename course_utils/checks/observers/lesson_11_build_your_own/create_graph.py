"""Running an engine in stage 5, `create_graph`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.checks.data import Observation, Raised, type_name
from course_utils.checks.observers.lesson_11_build_your_own import backward, record
from course_utils.checks.observers.lesson_11_build_your_own.backward import upstream
from course_utils.checks.observers.lesson_11_build_your_own.engines import (
    Engine,
    Look,
    attempt,
    behind,
    numbers,
    observer,
)
from course_utils.checks.observers.lesson_11_build_your_own.record import leaves_of
from course_utils.checks.scenes.lesson_11_build_your_own.expressions import Expression, run
from course_utils.checks.scenes.lesson_11_build_your_own.named import NAMED, POSITIVE, everything, thrice

PARTS = (*backward.PARTS, "engine.grad", "engine.grad(create_graph)")


def _twice(engine: Engine, expression: Expression, start: bool) -> Observation:
    leaves = leaves_of(engine, expression)
    result = run(expression, leaves)[-1]
    asked = [leaf for leaf, flag in zip(leaves, expression["flags"], strict=True) if flag]
    given = engine.tensor(upstream(result)) if start else None
    first = engine.grad(result, asked, given, create_graph=True)
    seen: Observation = {
        "first": [numbers(g) for g in first],
        "flags": [bool(getattr(g, "requires_grad", 0)) for g in first],
    }
    terms = [(g * g * leaf).sum() for g, leaf in zip(first, asked, strict=True) if g is not None]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return {**seen, "second": [numbers(g) for g in engine.grad(total, asked)]}


def _returned(engine: Engine) -> Observation:
    """Say what engine.grad returns for one input; and, where that is a list, what is in it."""
    x = engine.tensor([0.5, 2.0], requires_grad=True)
    found = engine.grad((x * x).sum(), [x])
    several = isinstance(found, list | tuple)
    return {
        "kind": type_name(found),
        "several": several,
        "arrays": [type_name(g) for g in found if not hasattr(g, "requires_grad")] if several else [],
    }


def _third(engine: Engine) -> list[Any]:
    x, square = (engine.tensor(leaf, requires_grad=True) for leaf in ([0.5, 2.0], POSITIVE))
    made = ((x * x * x * x).sum(), x), (everything(square), square)
    return [numbers(thrice(engine.grad, y, leaf)) for y, leaf in made]


def _plain(engine: Engine) -> Observation:
    x = engine.tensor([0.5, 2.0], requires_grad=True)
    y = x.exp().sum()
    (retained,) = engine.grad(y, [x], retain_graph=True)
    (g,) = engine.grad(y, [x])
    for _ in range(2):
        x.exp().sum().backward()
    return {"flags": [bool(getattr(one, "requires_grad", False)) for one in (retained, g, x.grad)]}


def _again(engine: Engine, first: Callable[[Any, Any], Any], second: Callable[[Any, Any], Any]) -> bool:
    """Return whether two passes over one result both end well."""
    x = engine.tensor([0.5, 2.0], requires_grad=True)
    y = (x.exp() * x).sum()
    first(y, x)
    return not isinstance(attempt(lambda: second(y, x)), Raised)


def _switched(engine: Engine) -> Observation:
    """Say after which passes, outside a block that records nothing and in one, recording is not as it was."""

    def passes() -> dict[str, bool]:
        x = engine.tensor([0.5, 2.0], requires_grad=True)
        recorded = {}
        for name, options in {"a pass": {}, "a pass with create_graph=True": {"create_graph": True}}.items():
            y = graphs.pop()
            engine.grad(y, leaves, **options)
            recorded[name] = bool((x * x).requires_grad)
        attempt(lambda: engine.grad(y, leaves, engine.tensor([1.0, 2.0, 3.0])))
        recorded["a pass from a gradient of another shape"] = bool((x * x).requires_grad)
        with np.errstate(over="raise"):  # else the number would be infinity
            attempt(lambda: engine.grad(large.pop(), leaves, engine.tensor([1e200, 1e200])))
        recorded["a pass in which a rule raises"] = bool((x * x).requires_grad)
        freed = graphs.pop()
        for _ in range(2):
            attempt(lambda: engine.grad(freed, leaves))
        return {**recorded, "a second pass over a freed graph": bool((x * x).requires_grad)}

    leaves = [engine.tensor([0.5, 2.0], requires_grad=True)]
    graphs = [leaves[0].exp().sum() for _ in range(6)]
    large = [leaves[0] * 1e200 for _ in range(2)]
    outside = [name for name, found in passes().items() if not found]
    if not hasattr(engine, "no_grad"):
        return {"outside": outside, "inside": []}
    with engine.no_grad():
        return {"outside": outside, "inside": [name for name, found in passes().items() if found]}


def _freed(engine: Engine) -> Observation:
    """Say which first pass leaves a graph to a second one."""

    def backward(y: Any, x: Any) -> None:
        y.backward()

    def plain(y: Any, x: Any) -> None:
        engine.grad(y, [x])

    def not_retained(y: Any, x: Any) -> None:
        engine.grad(y, [x], create_graph=True, retain_graph=False)

    ways = {"backward": backward, "plain": plain, "not retained": not_retained}
    return {name: _again(engine, way, plain) for name, way in ways.items()}


def _created(engine: Engine) -> Observation:
    x, u = engine.tensor([0.5, 2.0], requires_grad=True), engine.tensor([1.0, 1.0], requires_grad=True)
    y = (x.exp() * x * u).sum()  # nobody asks for u: its entry stays all the same
    before, entries = len(behind(y)[0]), _entries(y)
    first = numbers(engine.grad(y, [x], create_graph=True)[0])
    after = len(behind(y)[0])
    return {
        "nodes": [before, after],
        "same graph": _entries(y) == entries,
        "first": first,
        "second": numbers(engine.grad(y, [x])[0]),
        "grad": numbers(x.grad),
    }


def _entries(y: Any) -> list[Any]:
    """Return the name of each node behind a result, and which of its entries are None."""
    return [[node.name, [it is None for it in node.inputs]] for node in behind(y)[0]]


def _given(engine: Engine) -> Observation:
    """Take gradients from given ones: of a single number, and of one that requires a gradient itself."""
    x = engine.tensor([0.5, 2.0], requires_grad=True)
    v = engine.tensor([1.0, 3.0], requires_grad=True)
    (single,) = engine.grad((x * x).sum(), [x], gradient=engine.tensor(3.0))
    (unrecorded,) = engine.grad(x * x, [x], v)
    (g,) = engine.grad(x * x, [x], v, None, True)
    return {
        "recorded": bool(getattr(unrecorded, "requires_grad", False)),
        "single": numbers(single),
        "of given": numbers(engine.grad((g * g).sum(), [v])[0]),
    }


def _asked(engine: Engine) -> Observation:
    """Ask for one input twice, and for the result itself."""
    x = engine.tensor([0.5, 2.0], requires_grad=True)
    y = (x * x).sum()
    return {"twice": [numbers(g) for g in engine.grad(y, [x, y, x])]}


def _inside(engine: Engine) -> bool:
    """Return whether a pass with create_graph=True is recorded where nothing else is, if the engine has such blocks.

    What is not recorded outside of them either is another slip.
    """
    if not hasattr(engine, "no_grad"):
        return True
    x = engine.tensor([0.5, 2.0], requires_grad=True)
    results = [(x * x).sum() for _ in range(2)]
    outside = bool(engine.grad(results[0], [x], create_graph=True)[0].requires_grad)
    with engine.no_grad():
        return bool(engine.grad(results[1], [x], create_graph=True)[0].requires_grad) or not outside


def _left(engine: Engine) -> Observation:
    x, u = engine.tensor([0.5, 2.0], requires_grad=True), engine.tensor([1.0, 1.0], requires_grad=True)
    (x * u * 3.0).sum().backward()
    engine.grad((x * x * u).sum(), [x])
    return {"x": numbers(x.grad), "u": numbers(u.grad)}


def _inner(engine: Engine) -> Observation:
    x, u = engine.tensor([0.5, 2.0], requires_grad=True), engine.tensor([1.0, 1.0], requires_grad=True)
    h = x.exp()
    found = engine.grad((h * h).sum(), [h, u, x])
    return {"inner": numbers(found[0]), "unused": numbers(found[1]), "leaf": numbers(found[2])}


def look(engine: Engine, given: dict[str, Any]) -> Observation:
    return {
        "named": {name: attempt(lambda e=e: _twice(engine, e, True)) for name, e in NAMED.items()},  # type: ignore[misc]
        "returned": attempt(lambda: _returned(engine)),
        "freed": attempt(lambda: _freed(engine)),
        "third": attempt(lambda: _third(engine)),
        "plain": attempt(lambda: _plain(engine)),
        "created": attempt(lambda: _created(engine)),
        "left": attempt(lambda: _left(engine)),
        "switched": attempt(lambda: _switched(engine)),
        "given": attempt(lambda: _given(engine)),
        "asked": attempt(lambda: _asked(engine)),
        "inside": attempt(lambda: _inside(engine)),
        "inner": attempt(lambda: _inner(engine)),
        "random": [attempt(lambda e=e: _twice(engine, e, False)) for e in given["expressions"]],  # type: ignore[misc]
    }


LOOK = Look(PARTS, look)
observe = observer(record=record.LOOK, backward=backward.LOOK, create_graph=LOOK)
