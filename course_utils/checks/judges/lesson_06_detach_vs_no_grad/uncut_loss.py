"""Judging `uncut_loss`: repair a loss with hidden cuts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from course_utils.checks.compare import listed, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_06_detach_vs_no_grad import LESSON
from course_utils.checks.judges.lesson_06_detach_vs_no_grad.taken import NO_GRADIENT
from course_utils.checks.scenes.numbers import numbers


def _cases(seed: int) -> list[Case]:
    sizes = {
        "five points": (5, 3, torch.float32),
        "two points, double precision": (2, 4, torch.float64),
        "a short point and a negative scale": (5, 3, torch.float32),
    }
    cases = []
    for number, (name, (rows, columns, dtype)) in enumerate(sizes.items()):
        own = seed + 10 * number
        points, scale = numbers(own, rows, columns, dtype=dtype), numbers(own + 1, dtype=dtype).abs()
        if name == "a short point and a negative scale":
            points, scale = points / 200, -200 * (scale + 0.5)  # exp(-scale) alone overflows, and no share does
            points[0] *= 1e-5
        if name == "two points, double precision":
            points[0] *= 1e4  # so long that exp(scale * length) overflows
        weights = numbers(own + 2, rows, dtype=dtype)
        if name == "five points":  # long gradients, and far points whose share is not small
            weights, points, scale = 1e9 * weights, 1e4 * points, 1e-4 * scale
        given = {
            "points": Array.of(points),
            "scale": Array.of(scale),
            "weights": Array.of(weights),
        }
        cases.append(Case(name, given))
    return cases


def _loss(points: torch.Tensor, scale: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return torch.einsum("i,i->", weights, torch.exp(-scale * torch.einsum("ij,ij->i", points, points).sqrt()))


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    names = ("points", "scale", "weights")
    given = tuple(case.given[name].tensor() for name in names)
    yield right_value(seen["returned"], _loss(*given), "The loss")
    tensor = isinstance(seen["returned"], Array)
    yield Finding("tensor", tensor, "The loss is no tensor, so it has no graph.")
    yield Finding("graph", seen["graph"] or not tensor, "The loss has no graph, so no gradient can go through it.")
    measured = isinstance(seen["gradients"], dict)
    yield Finding("graph", measured or not seen["graph"], NO_GRADIENT)
    if measured:
        right = torch.func.grad(_loss, argnums=(0, 1, 2))(*given)
        for name, gradient in zip(names, right, strict=True):
            received = seen["gradients"].get(name)
            if received is None:
                yield Finding(f"to {name}", False, f"No gradient reaches {name}: something on the way cuts it off.")
            else:
                yield right_value(received, gradient, f"The gradient of {name}")
    yield Finding("untouched", seen["untouched"], "Your function changed the numbers in its inputs.")
    text = f"Your function left something behind: {listed(seen['marks'])}."
    yield Finding("as before", seen["marks"] == [], text)
    yield Finding("passes", seen["passes"] == 0, "Your function ran a backward pass. It should return the loss only.")


def _reached(seen: Observation) -> set[str]:
    gradients = seen["gradients"]
    return {name for name, value in gradients.items() if value is not None} if isinstance(gradients, dict) else set()


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    yield "The value is that of the broken loss: a cut changes no number. Only the gradients tell: all three arrive."


EXERCISE = Exercise(
    id="uncut_loss",
    title="Repair a loss with hidden cuts",
    lesson=LESSON,
    difficulty=2,
    minutes=10,
    points=2,
    call="uncut_loss(points, scale, weights)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "Follow each input to the loss, line by line. Where does its way go through something that is no tensor "
        "operation, or through a copy without a graph?",
        "torch.tensor copies numbers, and so does item(). NumPy and `.data` share memory and have no graph. And one "
        "line of the broken code only makes an error message go away.",
        "points.norm(dim=1) gives all lengths at once. torch.exp takes the place of NumPy's. Use scale and weights as "
        "they are, and delete requires_grad_().",
    ),
    misconceptions=(
        Misconception(
            "silenced",
            "Your loss requires a gradient, and no operation stands behind it: it is a leaf. Setting requires_grad on "
            "it silences the error and brings no gradient back.",
            lambda case, seen: bool(seen["leaf"]) and not _reached(seen),
        ),
        Misconception(
            "only the weights",
            "A gradient reaches weights and nothing else. What the weights are multiplied by is still cut off: a copy, "
            "or numbers without a graph.",
            lambda case, seen: _reached(seen) == {"weights"},
        ),
        Misconception(
            "the scale is still a number",
            "A gradient reaches points and weights. On its way to scale it meets a Python number, a copy, or what has "
            "no graph.",
            lambda case, seen: _reached(seen) == {"points", "weights"},
        ),
    ),
)
