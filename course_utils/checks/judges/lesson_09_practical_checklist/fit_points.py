"""Judging `fit_points`: naN at zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from course_utils.checks.compare import OF_VALUES, close, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_09_practical_checklist import LESSON
from course_utils.checks.judges.lesson_09_practical_checklist.session import floats, part, parts
from course_utils.checks.scenes.numbers import numbers


def _cases(seed: int) -> list[Case]:
    five = numbers(seed, 5, 2, dtype=torch.float64) * 2
    four = numbers(seed + 1, 4, 3, dtype=torch.float64) * 2
    four[2], four[3] = four[0], four[1] + 1e-6
    far = numbers(seed + 2, 30, 2, dtype=torch.float64) * 2 + 1e6
    made = {
        "five points": (five, 4),
        "two points in the same place, and two all but there": (four, 1),
        "two points that part": (four[:3], 3),
        "thirty points far from the origin": (far, 2),
        "no step at all": (five + 1, 0),
        "a single point": (five[:1], 2),
    }
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
    return numbers(seed, count, count, dtype=torch.float64).abs().fill_diagonal_(0.3)


def _moved(case: Case, others: bool = False) -> tuple[torch.Tensor, list[float]]:
    """Follow the gradient's formula: a pair pulls along its line, and a pair in one place not at all.

    The mean goes over all pairs, or over those with `others` alone.
    """
    points, wanted = case.given["points"].tensor(), case.given["wanted"].tensor()
    losses, count = [], len(points) ** 2 - len(points) * others
    for _ in range(case.given["steps"]):
        lines = points[:, None] - points[None]
        lengths = torch.linalg.vector_norm(lines, dim=-1)
        squares = (lengths - wanted) ** 2
        losses.append(float(squares.fill_diagonal_(0.0).sum() if others else squares.sum()) / count)
        pulls = (lengths - wanted) + (lengths - wanted).T
        directions = torch.where(lengths[..., None] > 0, lines / lengths[..., None], 0.0)
        points = points - 2 / count * (pulls[..., None] * directions).sum(1)
    return points, losses


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    points, losses = _moved(case)
    yield parts(seen["returned"], 2, "points, losses")
    yield right_value(part(seen["returned"], 0), points, "The tensor of moved points")
    yield floats(part(seen["returned"], 1), losses, "The list of losses")
    yield Finding("input", seen["same"], "Your function changed `points` or `wanted`, or left a mark on them.")
    text = "The points that you returned share memory with those that you were given."
    yield Finding("new", not seen["shares"], text)
    text = "The moved points require a gradient. Nobody is to differentiate them any further."
    yield Finding("requires a gradient", not seen["requires a gradient"], text)


def _nan(seen: Observation) -> int:
    """Return how many points have NaN in them."""
    points = part(seen["returned"], 0)
    return int(points.tensor().isnan().any(1).sum()) if isinstance(points, Array) and len(points.shape) == 2 else 0


def _cancelled(case: Case, seen: Observation) -> bool:
    first = part(part(seen["returned"], 1), 0)
    right = _moved(case)[1][0]
    return case.name.startswith("thirty") and type(first) is float and 1e-9 < abs(first / right - 1) < 1e-3


def _never_zero(case: Case, seen: Observation) -> bool | None:
    """Tell by a single point a distance of zero that came out as a little more; it is None where another case fits."""
    if case.name != "a single point":
        return None if _nan(seen) == 0 else False
    first = part(part(seen["returned"], 1), 0)
    wanted = float(case.given["wanted"].tensor())
    return type(first) is float and 1e-12 < wanted - first**0.5 < wanted / 10


def _of_others(case: Case, seen: Observation) -> bool | None:
    """Tell a mean over pairs of different points. A single point has none, and any end of it fits."""
    if len(case.given["points"].tensor()) == 1:
        return None
    (points, losses), returned = _moved(case, others=True), seen["returned"]
    return (
        case.given["steps"] > 0
        and right_value(part(returned, 0), points, "").ok
        and floats(part(returned, 1), losses, "").ok
    )


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, _ = seen[0]
    points = case.given["points"].tensor().requires_grad_()
    squares = (points[:, None] - points[None]).pow(2).sum(-1)
    (gradient,) = torch.autograd.grad(torch.where(squares > 0, squares.sqrt(), 0.0).sum(), points)
    lost, count = int(gradient.isnan().any(1).sum()), len(points)
    yield f"The broken loop's root gives NaN to {lost} of {count} points: each is no distance from itself."
    yield "torch.where passes a gradient of 0 to what it did not choose, and 0 times an infinite derivative is NaN."


EXERCISE = Exercise(
    id="fit_points",
    title="NaN at zero",
    lesson=LESSON,
    difficulty=3,
    minutes=10,
    points=3,
    call="fit_points(points, wanted, steps)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
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
            "a root of zero",
            "All points became NaN. Each point has the distance zero from itself. There the root's derivative is "
            "infinite, and a division by the distance is 0 / 0.",
            lambda case, seen: _nan(seen) == len(case.given["points"].tensor()),
        ),
        Misconception(
            "only the diagonal",
            "Your distances are safe for a point and itself. Two different points can be in one place as well.",
            lambda case, seen: case.name.startswith("two points") and _nan(seen) > 0,
        ),
        Misconception(
            "large squares subtracted",
            "Far from the origin your distances lose digits. That happens where squares of large numbers are "
            "subtracted, as in |a|² + |b|² - 2ab, by which torch.cdist computes for more than 25 points.",
            _cancelled,
        ),
        Misconception(
            "never zero",
            "Where a distance is zero, yours is a little more: a number is added under the root, or a limit keeps it "
            "from zero. Your losses go by that.",
            _never_zero,
            among=OF_VALUES,
        ),
        Misconception(
            "a point and itself left out",
            "Your mean goes over the pairs of different points. It is over all pairs, each point with itself included: "
            "for 5 points 25, and not 20.",
            _of_others,
        ),
        Misconception(
            "NaN replaced",
            "No point moved. Where that is because a gradient of NaN was replaced by 0, the NaN must not arise.",
            lambda case, seen: (
                case.given["steps"] > 0
                and isinstance(part(seen["returned"], 0), Array)
                and close(part(seen["returned"], 0), case.given["points"].tensor())
                and isinstance(part(seen["returned"], 1), list)
                and close(part(part(seen["returned"], 1), 0), _moved(case)[1][0])
                and len(part(seen["returned"], 1)) == case.given["steps"]
            ),
            among=OF_VALUES,
        ),
    ),
)
