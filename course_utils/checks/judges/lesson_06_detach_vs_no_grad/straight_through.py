"""Judging `straight_through`: round, and let the gradient through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from course_utils.checks.compare import close, listed, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_06_detach_vs_no_grad import LESSON
from course_utils.checks.judges.lesson_06_detach_vs_no_grad.taken import alone
from course_utils.checks.scenes.numbers import numbers


def _cases(seed: int) -> list[Case]:
    cases = []
    shapes: list[tuple[str, tuple[int, ...], torch.dtype, bool, bool]] = [
        ("a vector", (5,), torch.float32, True, False),
        ("a matrix, transposed", (2, 3), torch.float32, True, True),
        ("double precision", (3, 1, 2), torch.float64, True, False),
        ("no gradient wanted", (5,), torch.float32, False, False),
        ("a single number", (), torch.float32, True, False),
    ]
    for number, (name, shape, dtype, live, transposed) in enumerate(shapes):
        whole = (20 * numbers(seed + number, *shape)).round()
        x = (whole + 0.2 * numbers(seed + number + 50, *shape)).to(dtype)
        direction = numbers(seed + number + 90, *(reversed(shape) if transposed else shape), dtype=dtype)
        if dtype == torch.float64:  # numbers that single precision cannot hold
            x.view(-1)[0], direction.view(-1)[0] = 4e38, 5e38
        elif transposed:  # one that single precision can hold, and not its double
            x.view(-1)[0] = 3e38
        given = {"x": Array.of(x), "live": live, "transposed": transposed, "direction": Array.of(direction)}
        cases.append(Case(name, given))
    halves = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, -2.5], dtype=torch.float64)
    direction = numbers(seed + 95, 6, dtype=torch.float64)
    direction[1:] *= 3e-7  # nobody may take these for none
    given = {"x": Array.of(halves), "live": True, "transposed": False, "direction": Array.of(direction)}
    return [*cases, Case("numbers halfway between two whole ones", given)]


def _given_to_round(case: Case) -> torch.Tensor:
    x: torch.Tensor = case.given["x"].tensor()
    return x.t() if case.given["transposed"] else x


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    yield right_value(seen["returned"], _given_to_round(case).round(), "What you returned")
    yield Finding("input", seen["x"], "Your function changed the numbers in x.")
    text = f"Your function left something behind: {listed(seen['marks'])}."
    yield Finding("as before", seen["marks"] == [], text)
    if not case.given["live"]:
        text = "x requires no gradient, and what you returned requires one."
        yield Finding("no gradient", not seen["graph"], text)
        return
    graph = seen["graph"] or not alone(seen)
    yield Finding("graph", graph, "What you returned has no graph, so no gradient can go through it.")
    if not seen["graph"] or not seen["fits"]:  # of another shape nothing was asked
        return
    direction = case.given["direction"].tensor()
    if seen["gradient"] is None:
        text = "No gradient reached x: the graph of what you returned does not lead there."
        yield Finding("reaches x", not seen["x"], text)  # a view that was written to has another node than before
    else:
        wanted = direction.t() if case.given["transposed"] else direction
        yield right_value(seen["gradient"], wanted, "The gradient that reached x")


def _reached(seen: Observation) -> bool:
    """Return whether anything but zeros came to x."""
    return isinstance(seen["gradient"], Array) and bool(seen["gradient"].tensor().any())


def _flat(case: Case, seen: Observation) -> bool | None:
    """Tell rounding alone; None between two whole numbers, where a gradient may have been stopped on purpose."""
    flat = (
        case.given["live"]
        and seen["graph"]
        and close(seen["returned"], _given_to_round(case).round())
        and isinstance(seen["gradient"], Array)
        and not _reached(seen)
    )
    return None if flat and case.name.startswith("numbers halfway") else flat


def _elsewhere(case: Case, seen: Observation) -> bool | None:
    """Tell a graph that x has no part in; where x requires no gradient, only a leaf is surely none of x's."""
    apart = bool(seen["graph"] and seen["fits"] and seen["gradient"] is None)
    return None if apart and not case.given["live"] and not seen["leaf"] else apart


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    yield "What the check sent back through your result came to x unchanged: number for number, in each case."
    yield "Through torch.round alone zeros come: it is recorded like any operation, and is flat between its steps."


EXERCISE = Exercise(
    id="straight_through",
    title="Round, and let the gradient through",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call="straight_through(x)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
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
            _flat,
        ),
        Misconception(
            "a new leaf",
            "Where your answer failed, your result belongs to a graph that does not begin at x: it requires a "
            "gradient, and none goes on to x. Where x requires none, your result may not require one either.",
            _elsewhere,
        ),
        Misconception(
            "the other part",
            "Your result still holds the numbers of x, unrounded. The part that you detached and the part that you "
            "kept have changed places.",
            lambda case, seen: (
                close(seen["returned"], _given_to_round(case))
                and not _reached(seen)
                and (isinstance(seen["gradient"], Array) or not case.given["live"])
            ),
        ),
    ),
)
