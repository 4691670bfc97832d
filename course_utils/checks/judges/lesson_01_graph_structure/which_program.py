"""Judging `which_program`: which program drew this?"""

from __future__ import annotations

import torch

from course_utils.checks.exercise import Exercise, Misconception
from course_utils.checks.judges.lesson_01_graph_structure import LESSON
from course_utils.checks.judges.predictions import one_case
from course_utils.checks.judges.programs import Choices, Program
from course_utils.graph.trace import trace

PROGRAMS = {
    "A": Program("h = a.tanh()\ny = (h * h + b).sum()"),
    "B": Program("y = (a.tanh() * a.tanh() + b).sum()"),
    "C": Program("h = a.tanh()\ny = (h * h.detach() + b).sum()"),
    "D": Program("h = a.tanh()\ny = (h * (h + b)).sum()"),
    "E": Program("h = (a + b).tanh()\ny = (h * h).sum()"),
    "F": Program("h = a.tanh()\ny = (h * h).sum() + b.sum()"),
}

# What the pictures in the task show, as trace() tells it.
SHOWN = {
    "first": """
0 SumBackward0   -> 1
1 MulBackward0   -> 2, 3
2 TanhBackward0  -> 4
3 AddBackward0   -> 2, 5
4 AccumulateGrad leaf (3,) float32
5 AccumulateGrad leaf (3,) float32""",
    "second": """
0 SumBackward0   -> 1
1 AddBackward0   -> 2, 3
2 MulBackward0   -> 4, 5
3 AccumulateGrad leaf (3,) float32
4 TanhBackward0  -> 6
5 TanhBackward0  -> 6
6 AccumulateGrad leaf (3,) float32""",
    "third": """
0 SumBackward0   -> 1
1 AddBackward0   -> 2, 3
2 MulBackward0   -> 4, none
3 AccumulateGrad leaf (3,) float32
4 TanhBackward0  -> 5
5 AccumulateGrad leaf (3,) float32""",
}


def results() -> dict[str, tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Run each program on leaves of its own, and return `a`, `b` and its result `y`."""
    found = {}
    for letter, program in PROGRAMS.items():
        a, b = (torch.tensor([0.5, -1.0, 2.0]).mul(sign).requires_grad_() for sign in (1, -1))
        found[letter] = a, b, program.run(names={"a": a, "b": b}).names["y"]
    return found


def _right() -> dict[str, str]:
    drawn = {str(trace(y)).strip(): letter for letter, (_, _, y) in results().items()}
    return {picture: drawn[shown.strip()] for picture, shown in SHOWN.items()}


_PICTURES = Choices(
    _right,
    reasons={
        "first": "One tanh, two arrows into it: from the product, and from a sum that stands below the product.",
        "second": "Two nodes of tanh: the code calls it twice, and each call is recorded.",
        "third": "One arrow leaves the product. The other factor was cut off, and takes no gradient anywhere.",
    },
)

EXERCISE = Exercise(
    id="which_program",
    title="Which program drew this?",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=_PICTURES.judge,
    hints=(
        "An operation that runs makes one node, each time that it runs. A result that is used twice has one node and "
        "two arrows into it.",
        "Count the nodes of tanh in each picture. Then look which node stands above which: the last operation of the "
        "code is at the top.",
        "first: the product is above the sum, and both reach the one tanh. second: two nodes of tanh. third: one "
        "arrow leaves the product, so its other factor needs no gradient: look for a detach.",
    ),
    debrief=_PICTURES.debrief,
    misconceptions=(
        Misconception(
            "one node for each name",
            "You gave a picture with two nodes of tanh to a program that calls tanh once. Each call that runs makes a "
            "node, and a result that is used twice keeps the one it has.",
            _PICTURES.any_but(*({"second": letter} for letter in "ACDEF")),
        ),
        Misconception(
            "a cut leaves an arrow",
            "You gave the third picture to a program without a cut. From its product only one arrow leaves; without "
            "a cut there are as many as tracked factors.",
            _PICTURES.any_but(*({"third": letter} for letter in "ABDEF")),
        ),
        Misconception(
            "the other way round",
            "You gave the first picture to a program that adds after it multiplies, as if it were to be read from the "
            "leaves on. The top is the last operation: there the product is computed after the sum.",
            _PICTURES.any_but({"first": "A"}, {"first": "F"}),
        ),
    ),
)
