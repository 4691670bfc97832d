"""Judging functions that are the identity forward and change the gradient on its way back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import torch

from course_utils.checks.compare import close, right_value, told_apart
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Finding
from course_utils.checks.scenes.numbers import numbers

# Two norms that differ by 1e-6 clip alike to so many digits.
_DIGITS = 5e-6

_Rule = Callable[[Case, torch.Tensor], torch.Tensor]


def cases(
    asked: str,
    values: tuple[float, float, float],
    another: Callable[[float], float],
    odd: Mapping[str, float] = MappingProxyType({}),
    sizes: Mapping[str, float] = MappingProxyType({}),
) -> Callable[[int], list[Case]]:
    """Return what makes the cases. `odd` names further values of what is asked, each for x in the middle of a graph.

    `another` makes of a value that of a second call, which is not to change the first one. `sizes` says how long the
    gradients of a case are, where they are not of the size of 1.
    """
    # Name: is x a leaf, does it require a gradient, is the call under no_grad, the argument, and the shape.
    kinds: dict[str, tuple[bool, bool, bool, float, tuple[int, ...]]] = {
        "x in the middle of a graph": (False, True, False, values[0], (3, 5)),
        "x a leaf, float64": (True, True, False, values[1], (2, 1, 5)),
        "x without a gradient": (True, False, False, values[0], (3, 5)),
        "called under no_grad": (False, True, True, values[1], (3, 5)),
        **{name: (False, True, False, value, (15,)) for name, value in odd.items()},
        "x without dimensions": (False, True, False, values[2], ()),
    }

    def cases(seed: int) -> list[Case]:
        return [
            Case(
                name,
                {
                    **{"leaf": leaf, "requires_grad": requires, "no_grad": silent},
                    **{asked: value, "another": another(value)},
                    **{
                        key: Array.of(size * numbers(10 * seed + 4 * n + k, *shape, dtype=_dtype(name)))
                        for k, (key, size) in enumerate({"x": 1.0, "down": sizes.get(name, 1.0), "beside": 1.0}.items())
                    },
                },
            )
            for n, (name, (leaf, requires, silent, value, shape)) in enumerate(kinds.items())
        ]

    return cases


def _dtype(name: str) -> torch.dtype:
    return torch.float64 if "float64" in name else torch.float32


def graph(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    source = case.given["x"].tensor().requires_grad_(case.given["requires_grad"])
    return source, source if case.given["leaf"] else source.sin()


def gradients(case: Case, rule: _Rule) -> dict[str, Any]:
    """Return what has to arrive: the rule on the way through, and nothing of it beside."""
    source, x = graph(case)
    down, beside = case.given["down"].tensor(), case.given["beside"].tensor()

    def at(gradient: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad(x, source, gradient, retain_graph=True)[0]

    past = torch.autograd.grad((x.cos() * beside).sum(), source, retain_graph=True)[0]
    return {
        "through": [at(rule(case, by * down)) for by in (1, 0, 1e-7)],
        "beside": past,
        "both": at(rule(case, down)) + past,
        "twice": at(rule(case, down + beside)),
    }


def _arrived(
    received: Value, expected: torch.Tensor, what: str, scale: float = 0.0, digits: float = _DIGITS
) -> Finding:
    """Find as `right_value` does, and in float64 to `digits` of the largest number, or of `scale`."""
    found = right_value(received, expected, what)
    if found.prop != "value" or not isinstance(received, Array):
        return found
    relative = digits if expected.dtype == torch.float64 else 1e-4
    off = (received.tensor().detach() - expected).abs()
    if bool((off <= relative * max(float(expected.abs().max()), scale)).all()):
        return Finding("value", True)
    place = int(off.reshape(-1).nan_to_num(torch.inf).argmax())
    mine, its = (float(it.detach().reshape(-1)[place]) for it in (received.tensor(), expected))
    apart = " is {}, and the right one is {}.".format(*told_apart(mine, its))
    share = float(off.max() / expected.abs().max())
    little = f", by {share:.0e} of the largest, where float32 rounds to about 6e-08" if share < 1e-6 else ""
    return Finding("value", False, found.message or f"{what} is another than it should be{little}: one number{apart}")


def judge(rule: _Rule, digits: float = _DIGITS) -> Callable[[Case, Observation], Iterator[Finding]]:
    """Return what judges an answer with this rule, in float64 to so many digits: who clips may add to a norm."""
    arrived = partial(_arrived, digits=digits)

    def judge(case: Case, seen: Observation) -> Iterator[Finding]:
        source, x = graph(case)
        yield right_value(seen["returned"], x.detach(), "What you returned")
        yield Finding("x", not seen["changed"], "Your function wrote to x.")
        same = seen["required"] == case.given["requires_grad"]
        yield Finding("requires_grad", same, "Your function changed requires_grad of its input.")
        yield Finding("held", seen["held"] is None, "Your function left a gradient in .grad.")
        yield Finding("retains", not seen["retains"], "Your function called retain_grad() on x, which is not yours.")
        left = "on" if case.given["no_grad"] else "off"
        yield Finding("mode", not seen["switched"], f"Your function left gradients switched {left}.")
        if not source.requires_grad or case.given["no_grad"] or not isinstance(seen["returned"], Array):
            return
        yield Finding("graph", seen["recorded"], "What you returned has no graph: no gradient gets through.")
        if seen["through"] is not None:
            right = gradients(case, rule)
            passes = (
                "The gradient that arrives",
                "In a second pass, in which a gradient of zeros comes back, what arrives",
                "In a third pass, in which a very small gradient comes back, what arrives",
            )
            for what, mine, wanted in zip(passes, seen["through"], right["through"], strict=True):
                yield arrived(mine, wanted, what)
            yield arrived(seen["beside"], right["beside"], "What arrives from a use of x itself, beside your result,")
            # The two may cancel.
            largest = max(float(it.abs().max()) for it in (right["through"][0], right["beside"]))
            yield arrived(seen["both"], right["both"], "With a use of x beside your result, the gradient", largest)
            yield arrived(seen["twice"], right["twice"], "Where your result is used twice, the gradient")
            message = (
                "Your result was added to another tensor, and that one's gradient is wrong: your code writes into the "
                "gradient that it is given, and the other tensor shares it."
            )
            given = case.given["down"].tensor()
            yield Finding("neighbour", close(seen["neighbour"], given), message)

    return judge


def reached(case: Case, seen: Observation) -> bool:
    return seen["through"] is not None and close(seen["returned"], graph(case)[1].detach())


def by_rule(rule: _Rule) -> Callable[[Case, Observation], bool]:
    """Return whether the gradients are those of another rule on the right way."""

    def explains(case: Case, seen: Observation) -> bool:
        if not reached(case, seen):
            return False
        right = gradients(case, rule)
        pairs = zip((seen["through"][0], seen["beside"]), (right["through"][0], right["beside"]), strict=True)
        return all(_arrived(mine, wanted, "").ok for mine, wanted in pairs)

    return explains


def only_once(rule: _Rule) -> Callable[[Case, Observation], bool]:
    """Return whether a gradient was treated rightly in the first pass, and the same one not at all in a later one."""

    def explains(case: Case, seen: Observation) -> bool:
        if not reached(case, seen):
            return False
        right, untouched = gradients(case, rule), gradients(case, lambda case, gradient: gradient)
        first = close(seen["through"][0], right["through"][0]) and close(seen["beside"], right["beside"])
        later = ("both", "twice")
        as_they_came = all(close(seen[name], untouched[name]) for name in later)
        return first and as_they_came and not all(close(seen[name], right[name]) for name in later)

    return explains


def also_beside(rule: _Rule) -> Callable[[Case, Observation], bool]:
    def explains(case: Case, seen: Observation) -> bool:
        if not reached(case, seen) or seen["changed"]:  # who writes to x changes what its other uses send, too
            return False
        right = gradients(case, rule)
        return close(seen["through"][0], right["through"][0]) and not close(seen["beside"], right["beside"])

    return explains
