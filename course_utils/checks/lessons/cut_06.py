"""Exercises of lesson 06 on single functions: a gradient that is let through, and a loss with hidden cuts."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.predict_06 import LESSON
from course_utils.checks.observing.models import numbers

# Rounding, with a gradient. Numbers are exact halves, or keep away from them: a rounding error would decide near them.


def _to_round(seed: int) -> list[Case]:
    cases = []
    shapes: list[tuple[str, tuple[int, ...], torch.dtype, bool, bool]] = [
        ("a vector", (5,), torch.float32, True, False),
        ("a matrix, transposed", (2, 3), torch.float32, True, True),
        ("double precision", (3, 2, 2), torch.float64, True, False),
        ("no gradient wanted", (4,), torch.float32, False, False),
    ]
    for number, (name, shape, dtype, live, transposed) in enumerate(shapes):
        whole = (20 * numbers(seed + number, *shape)).round()
        x = (whole + 0.2 * numbers(seed + number + 50, *shape)).to(dtype)
        direction = numbers(seed + number + 90, *(reversed(shape) if transposed else shape), dtype=dtype)
        given = {"x": Array.of(x), "live": live, "transposed": transposed, "direction": Array.of(direction)}
        cases.append(Case(name, given))
    halves = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, -2.5])
    given = {"x": Array.of(halves), "live": True, "transposed": False, "direction": Array.of(numbers(seed + 95, 6))}
    return [*cases, Case("numbers halfway between two whole ones", given)]


def _given_to_round(case: Case) -> torch.Tensor:
    x: torch.Tensor = case.given["x"].tensor()
    return x.t() if case.given["transposed"] else x


def _judge_rounding(case: Case, seen: Observation) -> Iterator[Finding]:
    yield right_value(seen["returned"], _given_to_round(case).round(), "What you returned")
    yield Finding("input", seen["x"], "Your function changed the numbers in x.")
    text = "Your function left something behind: a hook or requires_grad on x, or recording switched otherwise."
    yield Finding("as before", seen["as before"], text)
    if not case.given["live"]:
        text = "x requires no gradient, and what you returned requires one."
        yield Finding("no gradient", not seen["graph"], text)
        return
    yield Finding("graph", seen["graph"], "What you returned does not require a gradient, so none can go through it.")
    if not seen["graph"]:
        return
    direction = case.given["direction"].tensor()
    if seen["gradient"] is None:
        yield Finding("reaches x", False, "No gradient reached x: the graph of what you returned does not lead there.")
    else:
        wanted = direction.t() if case.given["transposed"] else direction
        yield right_value(seen["gradient"], wanted, "The gradient that reached x")


straight_through = Exercise(
    id="straight_through",
    title="Round, and let the gradient through",
    lesson=LESSON,
    difficulty=2,
    minutes=10,
    points=2,
    call="straight_through(x)",
    cases=_to_round,
    judge=_judge_rounding,
    hints=(
        "Write the result as x plus something. What must be added to x to get the rounded number?",
        "The gradient of a sum goes to both terms. Which of them must count as a constant?",
        "The difference between the rounded numbers and x, detached, is a constant. Add it to x itself.",
    ),
    misconceptions=(
        Misconception(
            "rounding alone",
            "The numbers are right, and the gradient that reaches x is zero. Rounding is flat between its steps, and "
            "autograd follows the code that you wrote.",
            lambda case, seen: (
                case.given["live"]
                and seen["graph"]
                and close(seen["returned"], _given_to_round(case).round())
                and isinstance(seen["gradient"], Array)
                and not bool(seen["gradient"].tensor().any())
            ),
        ),
        Misconception(
            "a new leaf",
            "Your result requires a gradient, and no gradient reaches x. The result is the start of a new graph.",
            lambda case, seen: seen["graph"] and seen["gradient"] is None and (case.given["live"] or seen["leaf"]),
        ),
        Misconception(
            "the other part",
            "Your result still holds the numbers of x, unrounded. The part that you detached and the part that you "
            "kept have changed places.",
            lambda case, seen: close(seen["returned"], _given_to_round(case)),
        ),
    ),
)


# A loss with hidden cuts.


def _points(seed: int) -> list[Case]:
    sizes = {"five points": (5, 3, torch.float32), "two points, double precision": (2, 4, torch.float64)}
    return [
        Case(
            name,
            {
                "points": Array.of(numbers(seed + rows, rows, columns, dtype=dtype)),
                "scale": Array.of(numbers(seed + rows + 1, dtype=dtype).abs()),
                "weights": Array.of(numbers(seed + rows + 2, rows, dtype=dtype)),
            },
        )
        for name, (rows, columns, dtype) in sizes.items()
    ]


def _loss(points: torch.Tensor, scale: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return torch.einsum("i,i->", weights, torch.exp(-scale * torch.einsum("ij,ij->i", points, points).sqrt()))


def _judge_uncut(case: Case, seen: Observation) -> Iterator[Finding]:
    names = ("points", "scale", "weights")
    given = tuple(case.given[name].tensor() for name in names)
    yield right_value(seen["returned"], _loss(*given), "The loss")
    tensor = isinstance(seen["returned"], Array)
    yield Finding("tensor", tensor, "The loss is no tensor, so it has no graph.")
    yield Finding("graph", seen["graph"] or not tensor, "The loss does not require a gradient: nothing was recorded.")
    measured = isinstance(seen["gradients"], dict)
    yield Finding("measured", measured or not seen["graph"], "No gradient could be taken of what you returned.")
    if measured:
        right = torch.func.grad(_loss, argnums=(0, 1, 2))(*given)
        for name, gradient in zip(names, right, strict=True):
            received = seen["gradients"].get(name)
            if received is None:
                yield Finding(f"to {name}", False, f"No gradient reaches {name}: something on the way cuts it off.")
            else:
                yield right_value(received, gradient, f"The gradient of {name}")
    yield Finding("untouched", seen["untouched"], "Your function changed the numbers in its inputs.")
    text = "Your function left something behind: a hook or retain_grad on an input, or recording switched off."
    yield Finding("as before", seen["as before"], text)
    yield Finding("passes", seen["passes"] == 0, "Your function ran a backward pass. It should return the loss only.")


def _reached(seen: Observation) -> set[str]:
    gradients = seen["gradients"]
    return {name for name, value in gradients.items() if value is not None} if isinstance(gradients, dict) else set()


uncut_loss = Exercise(
    id="uncut_loss",
    title="Repair a loss with hidden cuts",
    lesson=LESSON,
    difficulty=2,
    minutes=12,
    points=2,
    call="uncut_loss(points, scale, weights)",
    cases=_points,
    judge=_judge_uncut,
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
            "A gradient reaches weights and nothing else. What the weights are multiplied by is still a copy.",
            lambda case, seen: _reached(seen) == {"weights"},
        ),
        Misconception(
            "the scale is still a number",
            "A gradient reaches points and weights. On its way to scale it meets a Python number.",
            lambda case, seen: _reached(seen) == {"points", "weights"},
        ),
    ),
)
