"""Judging `predict_none_or_zero`: none, zero, or another number?"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_07_gradient_accumulation import LESSON
from course_utils.checks.judges.lesson_07_gradient_accumulation.statements import GRADS, Statements
from course_utils.checks.judges.predictions import Table, of_a_kind, one_case


def _left(name: str, statements: tuple[Statements, ...]) -> float | None:
    w = torch.tensor(2.0, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    statements[0](w, optimizer)
    noted = w.grad
    for statement in statements[1:]:
        statement(w, optimizer)
    result = noted if name.startswith("kept") else w.grad
    return None if result is None else float(result)


_LEFT = Table(
    lambda: {name: _left(name, statements) for name, statements in GRADS.items()},
    reasons={
        "fresh": "No pass has run, and nobody has written a tensor.",
        "twice": "The second pass adds its 4 to the 3 that is there.",
        "two_uses": "Both uses send a gradient, 2w and 1, and w gets their sum.",
        "times_zero": "A pass reached w and brought a zero: that is a number.",
        "unused": "The pass reached v only.",
        "by_grad": "autograd.grad returns the gradient and writes nothing.",
        "stepped": "A step reads .grad and leaves it.",
        "cleared": "zero_grad() takes the tensor away.",
        "cleared_then": "The second pass found nothing to add to.",
        "filled": "set_to_none=False writes zeros into the tensor that is there.",
        "filled_fresh": "There is no tensor to write a zero into.",
        "frozen": "requires_grad decides what later passes do. What is in .grad stays.",
        "kept_added": "The second pass adds into the tensor that g names.",
        "kept_cleared": "w lets go of the tensor, and g still names it.",
        "kept_filled": "The zero is written into the tensor that g names.",
    },
)


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    yield from of_a_kind(seen["value"], GRADS, (str, bool), "None or a number, without quotes")
    yield from _LEFT.judge(case, seen)


EXERCISE = Exercise(
    id="predict_none_or_zero",
    title="None, zero, or another number?",
    lesson=LESSON,
    difficulty=1,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=_judge,
    hints=(
        "Two things write to .grad: a backward pass that reaches the leaf, and code that clears.",
        "A pass that reaches w adds, be it a zero. A pass that does not reach w leaves .grad alone. zero_grad() by "
        "default takes the tensor away; set_to_none=False writes zeros into the tensor, if there is one.",
        "Ask for `kept_...`: is the tensor that was noted the same object that is written to later? A second pass adds "
        "in place, zeros are written in place, and taking a tensor away from .grad does not change the tensor.",
    ),
    debrief=_LEFT.debrief,
    misconceptions=(
        Misconception(
            "zero_grad writes zeros",
            "You took zero_grad() to write zeros. By default it leaves no tensor in .grad at all.",
            _LEFT.but(cleared=0.0),
        ),
        Misconception(
            "no gradient is zero",
            "You took .grad to be 0 where no pass has reached w. There is no tensor yet, and nothing to read a 0 from.",
            _LEFT.but(fresh=0.0, unused=0.0, by_grad=0.0, filled_fresh=0.0),
        ),
        Misconception(
            "zero is None",
            "You took a gradient of 0 to be None. A pass that reaches w with a zero writes that zero.",
            _LEFT.but(times_zero=None),
        ),
        Misconception(
            "overwritten",
            "You took a second pass to replace what the first one left. It adds.",
            _LEFT.but(twice=4.0, kept_added=3.0),
        ),
        Misconception(
            "step clears",
            "You took optimizer.step() to clear the gradients. It reads them, and leaves them where they are.",
            lambda case, seen: any(_LEFT.but(stepped=wrong)(case, seen) for wrong in (None, 0.0)),
        ),
        Misconception(
            "a noted gradient is a copy",
            "You took the tensor that was noted to be a copy. It is the very tensor that .grad holds, and what is "
            "written into it in place shows.",
            _LEFT.but(kept_added=3.0, kept_filled=3.0),
        ),
    ),
)
