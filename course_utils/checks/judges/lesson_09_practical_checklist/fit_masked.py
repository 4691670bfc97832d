"""Judging `fit_masked`: writes that nobody sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch.nn.functional import mse_loss

from course_utils.checks.compare import close
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_09_practical_checklist import LESSON
from course_utils.checks.judges.lesson_09_practical_checklist.descent import (
    Path,
    Refused,
    State,
    descend,
    parameters_of,
    reached,
    right_end,
)
from course_utils.checks.judges.lesson_09_practical_checklist.session import floats, part, quiet
from course_utils.checks.scenes.lesson_09_practical_checklist.fit_masked import Masked, masked
from course_utils.checks.scenes.lesson_09_practical_checklist.training import RATE


def _cases(seed: int) -> list[Case]:
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


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
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


EXERCISE = Exercise(
    id="fit_masked",
    title="Writes that nobody sees",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call="fit_masked(model, optimizer, batches, limit)",
    cases=_cases,
    judge=_judge,
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
