"""Judging `diagnosis`: where does the gradient get lost, and why?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import torch
from torch import nn

from course_utils.checks.compare import right_entries
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_08_intermediate_gradients import LESSON
from course_utils.checks.judges.predictions import one_case
from course_utils.checks.scenes.lesson_08_intermediate_gradients.diagnosis import (
    batch_for_patients,
    patients,
    score_of_patients,
)


@cache
def _measured() -> dict[str, dict[str, Any]]:
    return {name: _measure(net) for name, net in patients().items()}


def _measure(net: nn.Sequential) -> dict[str, Any]:
    """Return the block where the gradient gets lost, and why, from measurements alone."""
    outputs: list[torch.Tensor] = []
    h = batch_for_patients().requires_grad_()
    for block in net:
        h = block(h)
        outputs.append(h)
    gradients = torch.autograd.grad(score_of_patients(h), outputs, allow_unused=True)
    sizes = [0.0 if gradient is None else float(gradient.norm()) for gradient in gradients]
    falls = [sizes[n] / max(sizes[n - 1], 1e-30) for n in range(1, len(sizes))]
    worst = max(range(len(falls)), key=falls.__getitem__) + 1
    steep = sum(fall > 2 for fall in falls)
    if steep == len(falls):
        return {"block": "all", "cause": "all blocks"}
    if not _connected(net, worst):
        return {"block": worst, "cause": "cut"}
    if not bool(outputs[worst].any()):
        return {"block": worst, "cause": "dead"}
    saturated = float((outputs[worst].abs() > 0.99).float().mean()) > 0.5
    return {"block": worst, "cause": "saturated" if saturated else "small weights"}


def _connected(net: nn.Sequential, number: int) -> bool:
    x = batch_for_patients().requires_grad_()
    result: torch.Tensor = net[number](x)
    return result.requires_grad and torch.autograd.grad(result.sum(), x, allow_unused=True)[0] is not None


def _right_diagnosis() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, facts in _measured().items():
        found |= {f"{name}_block": facts["block"], f"{name}_cause": facts["cause"]}
    return found


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    yield from right_entries(seen["value"], _right_diagnosis(), "Your diagnosis")


def _shifted(case: Case, seen: Observation) -> bool:
    right = _right_diagnosis()
    moved = {key: value - 1 if isinstance(value, int) else value for key, value in right.items()}
    return bool(seen["value"] == moved)


_REASONS = {
    "A": "nearly all outputs of block 3 are at 1 or -1, where tanh is flat.",
    "B": "all outputs of block 5 are 0, and what the gradient finds behind a ReLU at 0 is a factor of 0.",
    "C": "the outputs of block 6 hardly spread: its small weights shrink the gradient as they shrink the numbers.",
    "D": "before block 2 there is no gradient, not even 0.",
    "E": "the line falls in each block: a sigmoid's slope is at most 1/4.",
}


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    right = _right_diagnosis()
    return (f"{name}, {right[f'{name}_block']}, {right[f'{name}_cause']}: {why}" for name, why in _REASONS.items())


EXERCISE = Exercise(
    id="diagnosis",
    title="Where does the gradient get lost, and why?",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call=None,
    cases=one_case,
    judge=_judge,
    hints=(
        "Read the plot from the right, as the gradient goes. It is large at a block's output and small at the output "
        "of the block before. Which of the two blocks did it have to pass?",
        "Then look at that block's numbers in the table. A tanh near 1 or -1 is flat. A ReLU that gives zeros only "
        "passes nothing. Small weights make the output small, too, and the gradient in the same measure.",
        "None in the table means that no pass came there at all. Zero means that one came with nothing. A line that "
        "falls in each block has no single culprit.",
    ),
    debrief=_debrief,
    misconceptions=(
        Misconception(
            "one block too early",
            "You named the first block that has little gradient at its output. It is a victim: the loss happened in "
            "the block behind it, on the gradient's way.",
            _shifted,
        ),
        Misconception(
            "zero is cut",
            "You took a gradient of zeros for a cut graph, or the other way round. Where the graph is cut there is no "
            "gradient at all.",
            lambda case, seen: bool(
                seen["value"] == {**_right_diagnosis(), "B_cause": "cut", "D_cause": "dead"}
                or seen["value"] == {**_right_diagnosis(), "B_cause": "cut"}
                or seen["value"] == {**_right_diagnosis(), "D_cause": "dead"}
            ),
        ),
    ),
)
