"""Judging `fit_penalised`: a loss made of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch.nn.functional import mse_loss

from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_09_practical_checklist import LESSON
from course_utils.checks.judges.lesson_09_practical_checklist.descent import (
    Path,
    State,
    descend,
    on,
    parameters_of,
    reached,
    right_end,
)
from course_utils.checks.judges.lesson_09_practical_checklist.session import floats, quiet
from course_utils.checks.scenes.lesson_09_practical_checklist.training import RATE, network, regression


def _unmoved(seen: Observation, start: State, module: int = 0) -> bool:
    return reached(seen, start, module)


def _cases(seed: int) -> list[Case]:
    return [
        Case("three batches", {"seed": seed, "sizes": [5, 3, 6], "weight": 0.07}),
        Case("a strong penalty", {"seed": seed + 1, "sizes": [4, 7], "weight": 0.9}),
        Case(
            "a frozen bias, a parameter that the forward does not use, and one with two names",
            {"seed": seed + 2, "sizes": [4, 6, 3], "weight": 0.2, "oddities": True},
        ),
    ]


def _penalised(case: Case, weight: float) -> Path:
    model = network(case)
    fixed = {name: it.detach().clone() for name, it in model.named_parameters() if not it.requires_grad}

    def loss(inputs: torch.Tensor, targets: torch.Tensor) -> Callable[[State], torch.Tensor]:
        def of(state: State) -> torch.Tensor:
            squares = torch.cat([it.flatten() for it in state.values()])
            return mse_loss(on(model, inputs, state), targets) + weight * (squares @ squares)

        return of

    losses = [loss(*batch) for batch in regression(case)]
    return descend(parameters_of(model), losses, RATE, afterwards=lambda state: {**state, **fixed})


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    right = _penalised(case, case.given["weight"])
    yield floats(seen["returned"], right.losses, "The list of losses")
    yield from right_end(seen, right.end)
    yield from quiet(seen, 2 * len(case.given["sizes"]))  # the two parts of the loss may have a pass each


EXERCISE = Exercise(
    id="fit_penalised",
    title="A loss made of numbers",
    lesson=LESSON,
    difficulty=2,
    minutes=10,
    points=2,
    call="fit_penalised(model, optimizer, batches, weight)",
    cases=_cases,
    judge=_judge,
    hints=(
        "Print loss.grad_fn. What does it tell about the way from the loss to the model?",
        "A Python number has no graph. Find every place where the loss, or a part of it, becomes a number. There are "
        "two.",
        "Keep the error as the tensor that mse_loss returns. Add up p.pow(2).sum() over the parameters as tensors. "
        "Their weighted sum is the loss. Take .item() only for the list.",
    ),
    misconceptions=(
        Misconception(
            "no way back",
            "Your loop ran, and no parameter of the model moved. A loss that is made anew from a number has no way "
            "back to them.",
            lambda case, seen: _unmoved(seen, parameters_of(network(case))),
        ),
        Misconception(
            "a penalty without a gradient",
            "Your losses contain the penalty, but the parameters went the way of the error alone: the penalty reached "
            "the loss as a number.",
            lambda case, seen: reached(seen, _penalised(case, 0.0).end),
        ),
    ),
)
