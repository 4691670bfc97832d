"""Running an engine in stage 5, `create_graph`."""

from __future__ import annotations

from typing import Any

from course_utils.checks.data import Observation
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
from course_utils.checks.scenes.lesson_11_build_your_own.named import NAMED

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


def _third(engine: Engine) -> Any:
    x = engine.tensor([0.5, 2.0], requires_grad=True)
    y = (x * x * x * x).sum()
    for _ in range(3):
        (g,) = engine.grad(y, [x], create_graph=True)
        y = g.sum()
    return numbers(g)


def _plain(engine: Engine) -> Observation:
    x = engine.tensor([0.5, 2.0], requires_grad=True)
    y = x.exp().sum()
    (retained,) = engine.grad(y, [x], retain_graph=True)
    (g,) = engine.grad(y, [x])
    return {"flags": [bool(retained.requires_grad), bool(g.requires_grad)]}


def _created(engine: Engine) -> Observation:
    x = engine.tensor([0.5, 2.0], requires_grad=True)
    y = (x.exp() * x).sum()
    before = len(behind(y)[0])
    first = numbers(engine.grad(y, [x], create_graph=True)[0])
    after = len(behind(y)[0])
    return {
        "nodes": [before, after],
        "first": first,
        "second": numbers(engine.grad(y, [x])[0]),
        "grad": numbers(x.grad),
    }


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
        "third": attempt(lambda: _third(engine)),
        "plain": attempt(lambda: _plain(engine)),
        "created": attempt(lambda: _created(engine)),
        "left": attempt(lambda: _left(engine)),
        "inner": attempt(lambda: _inner(engine)),
        "random": [attempt(lambda e=e: _twice(engine, e, False)) for e in given["expressions"]],  # type: ignore[misc]
    }


LOOK = Look(PARTS, look)
observe = observer(record=record.LOOK, backward=backward.LOOK, create_graph=LOOK)
