"""Judging `retrain`: the head that never learns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch.nn.functional import cross_entropy

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
from course_utils.checks.judges.lesson_09_practical_checklist.heads import head_cases
from course_utils.checks.judges.lesson_09_practical_checklist.session import floats, quiet
from course_utils.checks.scenes.lesson_09_practical_checklist.retrain import Headed
from course_utils.checks.scenes.lesson_09_practical_checklist.training import RATE, classes, new_head


def _retrained(case: Case, body: bool = True) -> Path:
    model = Headed(case.given["seed"])
    model.head = new_head(case)
    start = parameters_of(model)
    fixed = {} if body else {name: it for name, it in start.items() if name.startswith("body")}

    def loss(inputs: torch.Tensor, targets: torch.Tensor) -> Callable[[State], torch.Tensor]:
        return lambda state: cross_entropy(on(model, inputs, state), targets)

    losses = [loss(*batch) for batch in classes(case)]
    return descend(start, losses, RATE, afterwards=lambda state: {**state, **fixed})


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    right = _retrained(case)
    yield Finding("head", seen["head in place"], "After your loop model.head is not the head that was given.")
    yield floats(seen["returned"], right.losses, "The list of losses")
    yield from right_end(seen, right.end)
    yield from quiet(seen, len(case.given["sizes"]))


def _head_unmoved(case: Case, seen: Observation) -> bool:
    return reached(seen, parameters_of(new_head(case)), 1)


EXERCISE = Exercise(
    id="retrain",
    title="The head that never learns",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call="retrain(model, head, batches)",
    cases=head_cases,
    judge=_judge,
    hints=(
        "Which tensors does the optimizer hold? Compare them with model.parameters() after the head was replaced.",
        "An optimizer keeps the tensors that it was given when it was made. It does not look at the model again.",
        "Set model.head first, then make the optimizer from model.parameters(). Or give the optimizer the new head's "
        "parameters with add_param_group.",
    ),
    misconceptions=(
        Misconception(
            "an optimizer from before",
            "The body was trained and the new head was not. The optimizer does not hold its parameters.",
            lambda case, seen: seen["head in place"] and _head_unmoved(case, seen),
        ),
        Misconception(
            "only the head",
            "The head was trained and the body stayed as it was. Here both are to be trained.",
            lambda case, seen: seen["head in place"] and reached(seen, _retrained(case, body=False).end),
        ),
        Misconception(
            "a copy of the head",
            "model.head holds other tensors than the head that was given, which is still as it was.",
            lambda case, seen: not seen["head in place"] and _head_unmoved(case, seen),
        ),
    ),
)
