"""Judging `jacobian`: a Jacobian from vector-Jacobian products."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from course_utils.checks.compare import OF_VALUES, close, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_02_how_backward_works import LESSON
from course_utils.checks.judges.lesson_02_how_backward_works.left_alone import left_alone
from course_utils.checks.scenes.lesson_02_how_backward_works.jacobian import MAPS
from course_utils.checks.scenes.numbers import numbers


def _cases(seed: int) -> Iterator[Case]:
    *names, last = MAPS
    shapes = ((3,), (5,), (2, 3), (2, 3), (), (3,), (2,))
    for offset, (name, shape) in enumerate(zip(names, shapes, strict=True)):
        x = numbers(seed + offset, *shape, dtype=torch.float64)
        leaf = offset % 2 == 0
        given = {"x": Array.of(x), "function": name, "leaves": ["x"] * leaf, "strided": offset == 3}
        if offset == 1:
            given["earlier"] = Array.of(numbers(seed + 50, *shape, dtype=torch.float64))
        yield Case(name, given)
    x = numbers(seed + 60, 2, 1, 3)
    yield Case("float32", {"x": Array.of(x), "function": last})


def _jacobian_oracle(case: Case) -> torch.Tensor:
    f, x = MAPS[case.given["function"]], case.given["x"].tensor()
    found: torch.Tensor = torch.autograd.functional.jacobian(f, x)
    return found


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    what = "What you returned"
    right = _jacobian_oracle(case)
    if "earlier" in case.given and getattr(seen["returned"], "shape", None) == tuple(right.shape):
        what += " in the second of two calls with the same f, each at a point of its own,"
    yield right_value(seen["returned"], right, what)
    message = f"You ran f forward {seen['calls']} times. All rows come from one graph, so one run is enough."
    if not seen["calls"]:
        again = "Called again with the same f, at another point, your function did not call f."
        message = again if "earlier" in case.given else "You never called f."
    yield Finding("forward", seen["calls"] == 1, message)
    yield from left_alone(seen)


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    rows = {case.name: MAPS[case.given["function"]](case.given["x"].tensor()).numel() for case, _ in seen}
    case, found = max(seen, key=lambda pair: rows[pair[0].name])
    passes = found["passes"]
    yield (
        f"In the case of {case.name}, with {rows[case.name]} rows, your function ran f once, and "
        f"{'no backward pass' if not passes else 'one backward pass' if passes == 1 else f'{passes} backward passes'}."
    )
    yield (
        "Reverse mode needs a product for each number of the output, forward mode one for each of the input: here "
        f"{rows[case.name]} and {case.given['x'].tensor().numel()}. One pass with is_grads_batched runs them together."
    )


def _once_for_each_row(case: Case, seen: Observation) -> bool:
    right = _jacobian_oracle(case)
    rows = right.numel() // case.given["x"].tensor().numel()
    return seen["calls"] > 1 and seen["calls"] in (rows, rows + 1) and close(seen["returned"], right)


def _in_grad(case: Case, seen: Observation) -> bool:
    """Tell whether x.grad holds something else than before."""
    return bool(seen["graded"]) and seen["grad"] is not None and seen["calls"] == 1 and not _all_rows_summed(case, seen)


def _other_way_round(case: Case, seen: Observation) -> bool:
    right, size = _jacobian_oracle(case), case.given["x"].tensor().dim()
    outputs = right.dim() - size
    turned = right.permute(*range(outputs, right.dim()), *range(outputs))
    return close(seen["returned"], turned)


def _all_rows_summed(case: Case, seen: Observation) -> bool | None:
    """Tell whether the sum of the rows was returned. Of a single row that is the row, without its own dimension."""
    return _sum_of_rows(case, seen, for_each=False)


def _each_row_the_sum(case: Case, seen: Observation) -> bool | None:
    """Tell whether each row is the sum of all rows. A single row is."""
    return _sum_of_rows(case, seen, for_each=True)


def _written_again(case: Case, seen: Observation) -> bool:
    """Tell whether a shift's rows are all alike: the vector that went in, as it was written last."""
    if case.name != "a shift" or not isinstance(seen["returned"], Array):
        return False
    rows = seen["returned"].tensor()
    return rows.shape == (2, 2) and bool((rows[0] == rows[1]).all())


def _sum_of_rows(case: Case, seen: Observation, for_each: bool) -> bool | None:
    right, size = _jacobian_oracle(case), case.given["x"].tensor().dim()
    outputs = tuple(range(right.dim() - size))
    total = right.sum(outputs)
    fits = bool(outputs) and close(seen["returned"], total.expand(right.shape) if for_each else total)
    return None if fits and total.numel() == right.numel() else fits


EXERCISE = Exercise(
    id="jacobian",
    title="A Jacobian from vector-Jacobian products",
    lesson=LESSON,
    difficulty=3,
    minutes=20,
    points=3,
    call="jacobian(f, x)",
    cases=_cases,
    judge=_judge,
    hints=(
        "One vector-Jacobian product gives one row, if the vector has a 1 at one place and 0 elsewhere.",
        "Work on a detached copy of x that requires grad. Run f once. Then run one autograd.grad for each number "
        "of the "
        "output, with the graph kept for the next one.",
        "Make an identity matrix of the size of the output. Reshape each row to the output's shape, use it as "
        "grad_outputs, and "
        "collect the results. Stack them and reshape to y.shape + x.shape. retain_graph=True is right here.",
    ),
    misconceptions=(
        Misconception(
            "the rows are summed",
            "You returned the sum of all rows: the gradient of f(x).sum(). A Jacobian keeps one row for each "
            "number of the output.",
            _all_rows_summed,
        ),
        Misconception(
            "each row is the sum",
            "Each of your rows is the sum of all rows. For one row, the gradient that goes in has a 1 at one place and "
            "0 elsewhere.",
            _each_row_the_sum,
            among=OF_VALUES,
        ),
        Misconception(
            "input dimensions first",
            "Your Jacobian has the dimensions of the input first. Expected are those of the output, then those "
            "of the input.",
            _other_way_round,
            among=OF_VALUES,
        ),
        Misconception(
            "a vector written again",
            "Where f only adds a number, autograd.grad returns the very tensor that you handed in, and your rows are "
            "all the same: you wrote into that tensor again. Hand in a new one for each row, or keep a copy.",
            _written_again,
            among=OF_VALUES,
        ),
        Misconception(
            "f runs for each row",
            "You ran f once for each number of the output. The graph of one run serves for all rows, if it is kept.",
            _once_for_each_row,
        ),
        Misconception(
            "the rows pile up in .grad",
            "Your function left .grad of x changed. backward() writes there, and adds to what it finds. autograd.grad "
            "returns a row, and writes nowhere.",
            _in_grad,
        ),
    ),
    debrief=_debrief,
)
