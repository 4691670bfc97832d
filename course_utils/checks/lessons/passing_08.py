"""Exercises of lesson 08 on changing a gradient on its way: turned around, and clipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.predict_08 import LESSON
from course_utils.checks.observing.models import numbers

Rule = Callable[[Case, torch.Tensor], torch.Tensor]


def _cases(asked: str, values: tuple[float, float]) -> Callable[[int], list[Case]]:
    # Name: is x a leaf, does it require a gradient, is the call under no_grad, and the argument.
    kinds = {
        "x in the middle of a graph": (False, True, False, values[0]),
        "x a leaf, float64": (True, True, False, values[1]),
        "x without a gradient": (True, False, False, values[0]),
        "called under no_grad": (False, True, True, values[1]),
    }

    def cases(seed: int) -> list[Case]:
        return [
            Case(
                name,
                {
                    **{"leaf": leaf, "requires_grad": requires, "no_grad": silent, asked: value},
                    **{
                        key: Array.of(numbers(10 * seed + 4 * n + k, *shape, dtype=_dtype(name)))
                        for k, (key, shape) in enumerate({"x": (5, 3), "down": (3, 5), "beside": (3, 5)}.items())
                    },
                },
            )
            for n, (name, (leaf, requires, silent, value)) in enumerate(kinds.items())
        ]

    return cases


def _dtype(name: str) -> torch.dtype:
    return torch.float64 if "float64" in name else torch.float32


def _graph(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    source = case.given["x"].tensor().t().requires_grad_(case.given["requires_grad"])
    return source, source if case.given["leaf"] else source.sin()


def _gradients(case: Case, rule: Rule) -> dict[str, Any]:
    """Return what has to arrive: the rule on the way through, and nothing of it beside."""
    source, x = _graph(case)
    down, beside = case.given["down"].tensor(), case.given["beside"].tensor()

    def at(gradient: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad(x, source, gradient, retain_graph=True)[0]

    past = torch.autograd.grad((x.cos() * beside).sum(), source, retain_graph=True)[0]
    return {
        "through": [at(rule(case, by * down)) for by in (1, 0, 0.001)],
        "beside": past,
        "both": at(rule(case, down)) + past,
        "twice": at(rule(case, down + beside)),
    }


def _arrived(received: Value, expected: torch.Tensor, what: str) -> Finding:
    """Find as `right_value` does, with float32's tolerance for float64: who clips may add a small number to a norm."""
    found = right_value(received, expected, what)
    if found.prop != "value" or not isinstance(received, Array):
        return found
    return right_value(Array.of(received.tensor().float()), expected.float(), what)


def _judge(rule: Rule) -> Callable[[Case, Observation], Iterator[Finding]]:
    def judge(case: Case, seen: Observation) -> Iterator[Finding]:
        source, x = _graph(case)
        yield right_value(seen["returned"], x.detach(), "What you returned")
        yield Finding("x", not seen["changed"], "Your function wrote to x.")
        same = seen["required"] == case.given["requires_grad"]
        yield Finding("requires_grad", same, "Your function changed requires_grad of its input.")
        yield Finding("held", seen["held"] is None, "Your function left a gradient in .grad.")
        yield Finding("retains", not seen["retains"], "Your function called retain_grad() on x, which is not yours.")
        yield Finding("mode", not seen["switched"], "Your function left gradients switched on or off.")
        if not source.requires_grad or case.given["no_grad"]:
            return
        yield Finding("graph", seen["recorded"], "What you returned has no graph: no gradient gets through.")
        if seen["through"] is not None:
            right = _gradients(case, rule)
            sizes = ("The gradient that arrives", "Where a gradient of zeros passes, what arrives")
            for what, mine, wanted in zip(
                (*sizes, "Where a very small gradient passes, what arrives"),
                seen["through"],
                right["through"],
                strict=True,
            ):
                yield _arrived(mine, wanted, what)
            yield _arrived(seen["beside"], right["beside"], "What arrives from a use of x itself, beside your result,")
            yield _arrived(seen["both"], right["both"], "With a use of x beside your result, the gradient")
            yield _arrived(seen["twice"], right["twice"], "Where your result is used twice, the gradient")
            message = (
                "Your result was added to another tensor, and that one's gradient is wrong: your code writes into the "
                "gradient that it is given, and the other tensor shares it."
            )
            given = case.given["down"].tensor()
            yield Finding("neighbour", close(seen["neighbour"], given), message)

    return judge


def _reached(case: Case, seen: Observation) -> bool:
    return seen["through"] is not None and close(seen["returned"], _graph(case)[1].detach())


def _by(rule: Rule) -> Callable[[Case, Observation], bool]:
    """Return whether the gradients are those of another rule on the right way."""

    def explains(case: Case, seen: Observation) -> bool:
        if not _reached(case, seen):
            return False
        right = _gradients(case, rule)
        pairs = zip((seen["through"][0], seen["beside"]), (right["through"][0], right["beside"]), strict=True)
        return all(close(mine, wanted) for mine, wanted in pairs)

    return explains


def _also_beside(rule: Rule) -> Callable[[Case, Observation], bool]:
    def explains(case: Case, seen: Observation) -> bool:
        if not _reached(case, seen):
            return False
        right = _gradients(case, rule)
        return close(seen["through"][0], right["through"][0]) and not close(seen["beside"], right["beside"])

    return explains


def _reversed(case: Case, gradient: torch.Tensor) -> torch.Tensor:
    return gradient * -float(case.given["strength"])


def _clipped(case: Case, gradient: torch.Tensor) -> torch.Tensor:
    size, most = float(gradient.norm()), float(case.given["max_norm"])
    return gradient if size <= most else gradient * (most / size)


def _always_scaled(case: Case, gradient: torch.Tensor) -> torch.Tensor:
    factor = float(case.given["max_norm"]) / float(gradient.norm().clamp(min=1e-30))
    return gradient * factor


def _clamped(case: Case, gradient: torch.Tensor) -> torch.Tensor:
    return gradient.clamp(-case.given["max_norm"], case.given["max_norm"])


def _row_by_row(case: Case, gradient: torch.Tensor) -> torch.Tensor:
    return torch.stack([_clipped(case, row) for row in gradient])


def _scales_small_ones(case: Case, seen: Observation) -> bool:
    if not _reached(case, seen):
        return False
    return close(seen["through"][2], _gradients(case, _always_scaled)["through"][2])


reverse_gradient = Exercise(
    id="reverse_gradient",
    title="Turn the gradient around",
    lesson=LESSON,
    difficulty=2,
    minutes=12,
    points=2,
    call="reverse_gradient(x, strength)",
    cases=_cases("strength", (0.7, 2.5)),
    judge=_judge(_reversed),
    hints=(
        "Two things are asked of one tensor: the numbers of x, and another gradient. Whatever changes the gradient "
        "must not sit on x itself, because x may have other uses.",
        "Make a new tensor with the numbers of x, by an operation whose derivative is 1. A hook may sit on that one. "
        "But not on a tensor that requires no gradient.",
        "y = x.view_as(x) or x * 1.0 makes a new tensor. If y.requires_grad, then y.register_hook with a function "
        "that returns -strength times the gradient. Return y.",
    ),
    misconceptions=(
        Misconception(
            "a hook on x",
            "Uses of x that do not go through your result get a changed gradient, too. What changes the gradient sits "
            "on x itself.",
            _also_beside(_reversed),
        ),
        Misconception(
            "the numbers are negated",
            "Your function changes the numbers: it returns x times something negative. The gradient then has the right "
            "sign, and the forward pass has not.",
            lambda case, seen: (
                isinstance(seen["returned"], Array)
                and any(
                    close(seen["returned"], by * _graph(case)[1].detach()) for by in (-1.0, -case.given["strength"])
                )
            ),
        ),
        Misconception(
            "without the strength",
            "Your gradient is turned around, and its size is as before: the strength plays no part.",
            _by(lambda case, gradient: -gradient),
        ),
        Misconception(
            "not turned around",
            "Your gradient is scaled by the strength, and its sign is as before.",
            _by(lambda case, gradient: case.given["strength"] * gradient),
        ),
    ),
)

clip_passing = Exercise(
    id="clip_passing",
    title="Clip inside the graph",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call="clip_passing(x, max_norm)",
    cases=_cases("max_norm", (0.8, 1.3)),
    judge=_judge(_clipped),
    hints=(
        "The norm is known only when the gradient comes by. So the work is done in a function that runs then.",
        "Clipping by norm keeps the direction: all numbers are multiplied by one factor. A gradient that is short "
        "enough passes as it is, and one of zeros must not end in a division by zero.",
        "Make a new tensor from x, as in the exercise before, and put a hook on it. In the hook: factor = "
        "max_norm / gradient.norm(), limited to at most 1 (torch.clamp does it), times the gradient.",
    ),
    misconceptions=(
        Misconception(
            "number by number",
            "You limit each number by itself. That changes the direction of the gradient, and its norm may still be "
            "larger than max_norm.",
            _by(_clamped),
        ),
        Misconception(
            "short ones are stretched",
            "A gradient that is shorter than max_norm comes out with that norm. Clipping only shortens.",
            _scales_small_ones,
        ),
        Misconception(
            "row by row",
            "You clip each row of the gradient by its own norm. Asked for is the norm of the whole gradient.",
            _by(_row_by_row),
        ),
        Misconception(
            "a hook on x",
            "Uses of x that do not go through your result get a changed gradient, too. What clips sits on x itself.",
            _also_beside(_clipped),
        ),
    ),
)
