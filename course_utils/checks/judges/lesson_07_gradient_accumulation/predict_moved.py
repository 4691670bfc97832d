"""Judging `predict_moved`: does this step move it?"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_07_gradient_accumulation import LESSON
from course_utils.checks.judges.lesson_07_gradient_accumulation.statements import MOVES
from course_utils.checks.judges.predictions import Table, of_a_kind, one_case


def _moved(kind: str, options: dict[str, float], after: str) -> bool:
    w = torch.tensor(2.0, requires_grad=True)
    optimizer: torch.optim.Optimizer = getattr(torch.optim, kind)([w], lr=0.1, **options)
    if after == "fresh":
        (0 * w).backward()
    else:
        (3 * w).backward()
        optimizer.step()
        if "clear" in after or after == "fill":
            optimizer.zero_grad(set_to_none="clear" in after)
        if "freeze" in after:
            w.requires_grad_(False)
    before = w.item()
    optimizer.step()
    return w.item() != before


_MOVED = Table(
    lambda: {name: _moved(*given) for name, given in MOVES.items()},
    reasons={
        "sgd_none": "A parameter without a gradient is skipped.",
        "sgd_zero": "The change is the learning rate times zero.",
        "momentum_none": "It is skipped, its momentum as well.",
        "momentum_zero": "The momentum of the first step goes on.",
        "decay_none": "It is skipped, its weight decay as well.",
        "decay_zero": "The decay is added to the zero.",
        "adam_none": "It is skipped, its averages as well.",
        "adam_zero": "The averages still hold the first gradient.",
        "adam_fresh_zero": "The averages are zero, too.",
        "adamw_fresh_zero": "AdamW shrinks weights by default, whatever the gradient is.",
        "frozen_left": "The optimizer reads .grad, which is still 3, and does not ask for requires_grad.",
        "frozen_none": "There is no gradient, so it is skipped.",
    },
)


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    yield from of_a_kind(seen["value"], MOVES, (str, int, float, type(None)), "True or False, without quotes")
    yield from _MOVED.judge(case, seen)


EXERCISE = Exercise(
    id="predict_moved",
    title="Does this step move it?",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=_judge,
    hints=(
        "An optimizer goes through its parameters and asks one thing first: is there a gradient?",
        "Where .grad is None the parameter is skipped, with all that belongs to it. Where it is a tensor, the whole "
        "formula is computed: gradient, momentum, decay.",
        "For each entry write down .grad at the last step: None, 0 or 3. For None nothing moves. For 0 ask whether the "
        "optimizer remembers an earlier gradient, or shrinks weights (AdamW does by default). For 3 it moves. Look "
        "whether anything asks for requires_grad.",
    ),
    debrief=_MOVED.debrief,
    misconceptions=(
        Misconception(
            "zero moves nothing",
            "You took a zero gradient to leave the parameter where it is. Momentum, Adam's averages and weight decay "
            "move it all the same.",
            _MOVED.but(momentum_zero=False, decay_zero=False, adam_zero=False, adamw_fresh_zero=False),
        ),
        Misconception(
            "None moves",
            "You took None to be like zero. A parameter whose .grad is None is skipped, momentum and decay included.",
            _MOVED.but(momentum_none=True, decay_none=True, adam_none=True),
        ),
        Misconception(
            "frozen is safe",
            "You took a frozen parameter to be safe from its optimizer. The optimizer reads .grad, not requires_grad, "
            "and an old gradient is still there.",
            _MOVED.but(frozen_left=False),
        ),
    ),
)
