"""Running an engine in stage 9, `custom_function`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.checks.data import Observation, Raised, type_name
from course_utils.checks.observers.lesson_11_build_your_own import backward, record
from course_utils.checks.observers.lesson_11_build_your_own.engines import (
    Engine,
    Look,
    attempt,
    behind,
    numbers,
    observer,
)

PARTS = (*backward.PARTS, "engine.Function")


def _functions(engine: Engine) -> tuple[Any, Any, dict[str, list[Any]]]:
    """Return two functions for an engine, and what is noted when they run."""
    noted: dict[str, list[Any]] = {"forward": [], "backward": [], "needs": [], "types": [], "number": []}

    class Odd(engine.Function):  # type: ignore[misc]
        """Cubes, and says that its gradient is 7 times what comes in: whose rule is used shows."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            noted["forward"].append("Odd")
            noted["types"].append(type_name(x))
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            noted["backward"].append("Odd")
            noted["types"].append(type_name(g))
            return 7.0 * g

    class Mixed(engine.Function):  # type: ignore[misc]
        """a * b * number, with the gradients of a and b, and none for the number."""

        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, number: float) -> Any:
            noted["needs"].append([bool(flag) for flag in ctx.needs_input_grad])
            noted["number"].append(type_name(number))
            ctx.save_for_backward(a, b)
            ctx.number = number
            return a * b * number

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            noted["backward"].append("Mixed")
            a, b = ctx.saved_tensors
            noted["types"] += [type_name(one) for one in (g, a, b)]
            return g * b * ctx.number, (g * a * ctx.number if ctx.needs_input_grad[1] else None), None

    return Odd, Mixed, noted


def _giving(engine: Engine, gradients: Callable[[Any], Any]) -> Any:
    """Return a function that adds its inputs up, and whose backward gives these gradients."""

    class Giving(engine.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            return sum(inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return gradients(g)

    return Giving


def _leaf(engine: Engine, *given: float) -> Any:
    return engine.tensor(given, requires_grad=True)


def _own_rule(engine: Engine) -> Observation:
    odd, _, noted = _functions(engine)
    x = _leaf(engine, 1.5, 2.0)
    y = odd.apply(x)
    z = y * 2.0 + (y + y.exp() * 0.0)
    made = y.grad_fn is not None and bool(y.requires_grad)
    nodes = len(behind(y)[0])
    if made:
        z.sum().backward()
    return {"value": numbers(y), "gradient": numbers(x.grad), "made": made, "nodes": nodes, **noted}


def _mixed(engine: Engine) -> Observation:
    _, mixed, noted = _functions(engine)
    a, b, c = _leaf(engine, 1.5, 2.0), _leaf(engine, 0.5, 3.0), engine.tensor([4.0, 5.0])
    value = mixed.apply(a * 1.0, b, 10.0)
    (value.sum() + mixed.apply(b, c, 2.0).sum()).backward()
    return {
        "value": numbers(value),
        "gradients": [numbers(one.grad) for one in (a, b)],
        "needs": noted["needs"],
        "number": noted["number"],
        "types": noted["types"],
        "backward": len(noted["backward"]),
    }


def _unwanted(engine: Engine) -> Observation:
    x, c = _leaf(engine, 1.5, 2.0), engine.tensor([4.0, 5.0])
    _giving(engine, lambda g: (5.0 * g, 3.0 * g)).apply(c, x).sum().backward()
    return {"constant": numbers(c.grad), "leaf": numbers(x.grad)}


def _not_needed(engine: Engine) -> Observation:
    (of_constants, _, theirs), (odd, _, noted) = _functions(engine), _functions(engine)
    x = _leaf(engine, 1.5, 2.0)
    constant = of_constants.apply(engine.tensor([1.0, 2.0]))
    odd.apply(x)  # nothing comes of it
    (x * constant).sum().backward()
    made, needs = constant.grad_fn is not None, bool(constant.requires_grad)
    of_no_node = 0 if made else len(theirs["backward"])  # a gradient does reach a node
    return {"made": made, "needs": needs, "backward": len(noted["backward"]) + of_no_node}


def _number(engine: Engine) -> Any:
    x = _leaf(engine, 1.5, 2.0)
    _giving(engine, lambda g: (3.0 * g, None)).apply(x, 4.0).sum().backward()
    return numbers(x.grad)


def _number_first(engine: Engine) -> Any:
    x = _leaf(engine, 1.5, 2.0)
    _giving(engine, lambda g: (None, 3.0 * g)).apply(4.0, x).sum().backward()
    return numbers(x.grad)


def _one_saved(engine: Engine) -> Any:
    class Square(engine.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2.0 * g * x

    x = _leaf(engine, 1.5, 2.0)
    Square.apply(x).sum().backward()
    return numbers(x.grad)


def _again(engine: Engine) -> int | None:
    """Return how often backward runs in two passes; None for an engine that retains no graph yet."""
    _, mixed, noted = _functions(engine)
    y = mixed.apply(_leaf(engine, 1.5, 2.0), _leaf(engine, 0.5, 3.0), 2.0).sum()
    x = _leaf(engine, 1.0)
    if isinstance(attempt(lambda: (x * x).sum().backward(None, retain_graph=True)), Raised):
        return None
    y.backward(None, retain_graph=True)
    y.backward()
    return len(noted["backward"])


def _none(engine: Engine) -> Observation:
    odd, _, noted = _functions(engine)
    left = _giving(engine, lambda g: (3.0 * g, None))  # nothing to the second input, though that needs a gradient
    a, b, c = _leaf(engine, 1.5, 2.0), _leaf(engine, 0.5, 3.0), _leaf(engine, 4.0, 5.0)
    h = b.exp()
    (left.apply(a * 2.0, h).sum() + (h * c).sum()).backward()
    alone = _leaf(engine, 4.0, 5.0)
    left.apply(c, alone.exp()).sum().backward()
    given, further = _leaf(engine, 4.0, 5.0), _leaf(engine, 4.0, 5.0)
    left.apply(c, given).sum().backward()
    left.apply(c, odd.apply(further)).sum().backward()
    only = _leaf(engine, 4.0, 5.0)
    _giving(engine, lambda g: None).apply(only).sum().backward()  # for its one input, and in no tuple
    return {
        "a": numbers(a.grad),
        "b": numbers(b.grad),
        "alone": numbers(alone.grad),
        "given": numbers(given.grad),
        "only": numbers(only.grad),
        "backward": len(noted["backward"]),
    }


def _quiet(engine: Engine) -> list[bool] | None:
    """Return what a result has that was made with recording off; None for an engine that cannot yet."""
    if not hasattr(engine, "no_grad"):
        return None
    odd, *_ = _functions(engine)
    with engine.no_grad():
        y = odd.apply(_leaf(engine, 1.5, 2.0))
    return [bool(y.requires_grad), y.grad_fn is not None]


def _tuple_of_one(engine: Engine) -> Any:
    x = _leaf(engine, 1.5, 2.0)
    _giving(engine, lambda g: (7.0 * g,)).apply(x).sum().backward()
    return numbers(x.grad)


def _counted(engine: Engine, gradients: Callable[[Any], Any]) -> str:
    _giving(engine, gradients).apply(_leaf(engine, 1.0, 3.0), _leaf(engine, 2.0, 5.0)).sum().backward()
    return "no error"


def look(engine: Engine, given: dict[str, Any]) -> Observation:
    with np.errstate(all="ignore"):
        return {
            "own": attempt(lambda: _own_rule(engine)),
            "mixed": attempt(lambda: _mixed(engine)),
            "unwanted": attempt(lambda: _unwanted(engine)),
            "not needed": attempt(lambda: _not_needed(engine)),
            "none": attempt(lambda: _none(engine)),
            "quiet": attempt(lambda: _quiet(engine)),
            "number": attempt(lambda: _number(engine)),
            "number first": attempt(lambda: _number_first(engine)),
            "one saved": attempt(lambda: _one_saved(engine)),
            "again": attempt(lambda: _again(engine)),
            "tuple": attempt(lambda: _tuple_of_one(engine)),
            "too few": attempt(lambda: _counted(engine, lambda g: g)),
            "too many": attempt(lambda: _counted(engine, lambda g: (g, g, g))),
            "one None more": attempt(lambda: _counted(engine, lambda g: (g, g, None))),
        }


LOOK = Look(PARTS, look)
observe = observer(record=record.LOOK, backward=backward.LOOK, custom_function=LOOK)
