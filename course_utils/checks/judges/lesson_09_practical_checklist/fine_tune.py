"""Judging `fine_tune`: a frozen backbone that moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from course_utils.checks.compare import listed
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_09_practical_checklist import LESSON
from course_utils.checks.judges.lesson_09_practical_checklist.descent import (
    Path,
    Refused,
    State,
    descend,
    on,
    parameters_of,
    reached,
    right_end,
)
from course_utils.checks.judges.lesson_09_practical_checklist.heads import head_cases
from course_utils.checks.judges.lesson_09_practical_checklist.session import floats, quiet
from course_utils.checks.scenes.lesson_09_practical_checklist.fine_tune import backbone_and_head
from course_utils.checks.scenes.lesson_09_practical_checklist.training import RATE, classes


def _tuned(case: Case) -> tuple[Path, State, State]:
    """Return the head's path, and what the backbone's parameters and buffers are to stay."""
    backbone, head, _ = backbone_and_head(case)
    backbone.eval()

    def loss(inputs: torch.Tensor, targets: torch.Tensor) -> Callable[[State], torch.Tensor]:
        with torch.no_grad():
            features = backbone(inputs)
        return lambda state: cross_entropy(on(head, features, state), targets)

    losses = [loss(*batch) for batch in classes(case)]
    path = descend(parameters_of(head), losses, RATE, momentum=0.9, decay=0.1)
    return path, parameters_of(backbone), dict(backbone.named_buffers())


def _frozen(received: Any, right: State) -> bool:
    """Return whether nothing changed, to the bit."""
    return isinstance(received, dict) and received == {name: Array.of(it) for name, it in right.items()}


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    path, parameters, buffers = _tuned(case)
    text = "Parameters of the backbone are not what they were."
    yield Finding("backbone", _frozen(seen["parameters"][0], parameters), text)
    changed = [name for name, it in buffers.items() if seen["buffers"][0].get(name) != Array.of(it)]
    yield Finding("buffers", not changed, f"Buffers of the backbone changed: {listed(changed)}.")
    yield floats(seen["returned"], path.losses, "The list of losses")
    yield from right_end(seen, path.end, 1, "the head")
    yield from quiet(seen, len(case.given["sizes"]), training=False, free=True)
    made, count = len(seen["steps"]), len(case.given["sizes"])
    yield Finding("steps", made == count, f"The given optimizer stepped {made} times; there are {count} batches.")
    recorded = any(run["recorded"] for run in seen["runs"] if run["shape"][-1:] == [5])
    text = "What the backbone returned had a graph. Nothing in there is to be trained, so nothing need be recorded."
    yield Finding("recorded", not recorded, text)


EXERCISE = Exercise(
    id="fine_tune",
    title="A frozen backbone that moves",
    lesson=LESSON,
    difficulty=4,
    minutes=20,
    points=3,
    call="fine_tune(backbone, head, optimizer, batches)",
    cases=head_cases,
    judge=_judge,
    hints=(
        "Copy backbone.state_dict() before the loop and compare it after each step. Parameters change and buffers "
        "change: two causes.",
        "The optimizer never looks at requires_grad. It looks at .grad, and the backbone has gradients left from "
        "earlier. And batch norm updates its statistics in training mode, gradients or not.",
        "backbone.eval(); clear with optimizer.zero_grad(), which knows the backbone as well: where .grad is None, "
        "momentum and weight decay are skipped. Compute the features under no_grad.",
    ),
    misconceptions=(
        Misconception(
            "old gradients",
            "The backbone's buffers stayed, its parameters did not. The optimizer moves whatever has a gradient in "
            ".grad, and the backbone's parameters had one.",
            lambda case, seen: (
                not _frozen(seen["parameters"][0], _tuned(case)[1]) and _frozen(seen["buffers"][0], _tuned(case)[2])
            ),
        ),
        Misconception(
            "running statistics",
            "The backbone's parameters stayed, its buffers did not: batch norm was in training mode.",
            lambda case, seen: (
                _frozen(seen["parameters"][0], _tuned(case)[1]) and not _frozen(seen["buffers"][0], _tuned(case)[2])
            ),
        ),
        Misconception(
            "recorded for nothing",
            "All numbers are right. But the backbone's forward was recorded, and its tensors were saved, for a "
            "gradient that nobody wants.",
            lambda case, seen: (
                _frozen(seen["parameters"][0], _tuned(case)[1])
                and _frozen(seen["buffers"][0], _tuned(case)[2])
                and reached(seen, _tuned(case)[0].end, 1)
                and any(run["recorded"] for run in seen["runs"] if run["shape"][-1:] == [5])
            ),
        ),
        Refused(
            "everything under no_grad",
            "Your code ended because the loss had no graph: the head must be recorded, and only the backbone need not.",
            words="does not require grad and does not have a grad_fn",
        ),
    ),
)
