"""Exercises of lesson 09: loops whose gradients are silently wrong, or NaN."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch.nn.functional import mse_loss

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.oracle_09 import (
    LESSON,
    Path,
    Refused,
    State,
    descend,
    floats,
    parameters_of,
    part,
    parts,
    quiet,
    reached,
    right_end,
    session,
)
from course_utils.checks.observing.loops_09 import RATE, Masked, masked
from course_utils.checks.observing.models import numbers

# Writes that autograd does not see.


def _masked_cases(seed: int) -> list[Case]:
    return [
        Case("three batches", {"seed": seed, "sizes": [5, 4, 6], "limit": 0.55}),
        Case("a wide limit", {"seed": seed + 1, "sizes": [4, 3], "limit": 9.0}),
    ]


def _masked_path(case: Case, *, blind: bool = False) -> Path:
    """Follow the loop. `blind`: the gradient does not know of the mask."""
    model = Masked(case.given["seed"])
    limit = case.given["limit"]

    def kept(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return hidden + (hidden * mask - hidden).detach() if blind else hidden * mask

    def loss(inputs: torch.Tensor, mask: torch.Tensor, targets: torch.Tensor) -> Callable[[State], torch.Tensor]:
        def of(state: State) -> torch.Tensor:
            hidden = (inputs @ state["first.weight"].T + state["first.bias"]).tanh()
            result = kept(hidden, mask) @ state["last.weight"].T + state["last.bias"]
            return mse_loss(result, targets)

        return of

    def within(state: State) -> State:
        return {**state, "last.weight": state["last.weight"].clamp(-limit, limit)}

    start = parameters_of(model)
    return descend(start, [loss(*batch) for batch in masked(case)], RATE, afterwards=within)


def _judge_masked(case: Case, seen: Observation) -> Iterator[Finding]:
    right = _masked_path(case)
    yield floats(seen["returned"], right.losses, "The list of losses")
    yield from right_end(seen, right.end)
    yield from quiet(seen, len(case.given["sizes"]))


def _first_loss_right(case: Case, seen: Observation) -> bool:
    first = part(seen["returned"], 0)
    return type(first) is float and close(first, _masked_path(case).losses[0])


def _within(case: Case, seen: Observation) -> bool:
    weight = seen["parameters"][0].get("last.weight")
    return isinstance(weight, Array) and bool((weight.tensor().abs() <= case.given["limit"] + 1e-9).all())


fit_masked = Exercise(
    id="fit_masked",
    title="Writes that nobody sees",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call="fit_masked(model, optimizer, batches, limit)",
    cases=_masked_cases,
    judge=_judge_masked,
    hints=(
        "Two lines write through .data. For each ask what autograd saved before, and still needs.",
        "tanh saved its own result, and the last layer its weight. Writing through .data changes both without raising "
        "the version counter. Make the first write an operation, and move the second.",
        "hidden * mask makes a new tensor and is recorded. Limit the weight after optimizer.step(), when no pass needs "
        "the old numbers any more: under no_grad, with clamp_.",
    ),
    misconceptions=(
        Refused(
            "caught by the counter",
            "A write in place raises the version counter, so backward now refuses where it used to be silently wrong. "
            "The numbers that it needs are still overwritten.",
            words="modified by an inplace operation",
        ),
        Misconception(
            "a mask that autograd does not know",
            "The losses begin rightly, but the gradient passes the mask as if it were not there.",
            lambda case, seen: _first_loss_right(case, seen) and reached(seen, _masked_path(case, blind=True).end),
        ),
        Misconception(
            "beyond the limit",
            "At the end there are weights beyond the limit in the last layer.",
            lambda case, seen: not _within(case, seen),
        ),
    ),
)


# A square root at zero.


def _point_cases(seed: int) -> list[Case]:
    five = numbers(seed, 5, 2, dtype=torch.float64) * 2
    four = numbers(seed + 1, 4, 3, dtype=torch.float64) * 2
    four[2] = four[0]
    made = {"five points": (five, 4), "two points in the same place": (four, 3)}
    return [
        Case(
            name,
            {
                "points": Array.of(points),
                "wanted": Array.of(_wished(seed + steps, len(points))),
                "steps": steps,
            },
        )
        for name, (points, steps) in made.items()
    ]


def _wished(seed: int, count: int) -> torch.Tensor:
    return numbers(seed, count, count, dtype=torch.float64).abs().fill_diagonal_(0.0)


def _moved(case: Case) -> tuple[torch.Tensor, list[float]]:
    """Follow the gradient's formula: a pair pulls along its line, and a pair in one place not at all."""
    points, wanted = case.given["points"].tensor(), case.given["wanted"].tensor()
    losses = []
    for _ in range(case.given["steps"]):
        lines = points[:, None] - points[None]
        lengths = torch.linalg.vector_norm(lines, dim=-1)
        losses.append(float(((lengths - wanted) ** 2).mean()))
        pulls = (lengths - wanted) + (lengths - wanted).T
        directions = torch.where(lengths[..., None] > 0, lines / lengths[..., None], 0.0)
        points = points - 2 / len(points) ** 2 * (pulls[..., None] * directions).sum(1)
    return points, losses


def _judge_points(case: Case, seen: Observation) -> Iterator[Finding]:
    points, losses = _moved(case)
    yield parts(seen["returned"], 2, "points, losses")
    yield right_value(part(seen["returned"], 0), points, "The moved points")
    yield floats(part(seen["returned"], 1), losses, "The list of losses")
    yield Finding("input", seen["same"], "Your function changed `points` or `wanted`, or left a mark on them.")
    text = "The moved points require a gradient. Nobody is to differentiate them any further."
    yield Finding("requires a gradient", not seen["requires a gradient"], text)
    yield session(seen)


def _nan(seen: Observation) -> bool:
    points = part(seen["returned"], 0)
    return isinstance(points, Array) and bool(points.tensor().double().isnan().any())


fit_points = Exercise(
    id="fit_points",
    title="NaN at zero",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call="fit_points(points, wanted, steps)",
    cases=_point_cases,
    judge=_judge_points,
    hints=(
        "The loss of the first step is a number. So NaN arises in the backward pass. Anomaly mode names the node.",
        "torch.where chooses a branch in the forward pass. In the backward pass the other branch gets a gradient of 0, "
        "and 0 times infinity is NaN. Keep the zero away from the root itself.",
        "With `apart = squares > 0`, put a harmless number in before the root, squares.where(apart, 1), and put the "
        "zero back after it, as the loop already does. Or use a PyTorch function that has a gradient at zero: "
        "torch.linalg.vector_norm.",
    ),
    misconceptions=(
        Misconception(
            "only the diagonal",
            "Your distances are safe for a point and itself. Two different points can be in one place as well.",
            lambda case, seen: case.name == "two points in the same place" and _nan(seen),
        ),
        Misconception(
            "NaN replaced",
            "No point moved. Every point's gradient was NaN, and you put 0 in its place.",
            lambda case, seen: (
                isinstance(part(seen["returned"], 0), Array)
                and close(part(seen["returned"], 0), case.given["points"].tensor())
                and isinstance(part(seen["returned"], 1), list)
                and close(part(part(seen["returned"], 1), 0), _moved(case)[1][0])
                and len(part(seen["returned"], 1)) == case.given["steps"]
            ),
        ),
    ),
)
