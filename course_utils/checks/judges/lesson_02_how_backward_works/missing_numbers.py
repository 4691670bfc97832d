"""Judging `missing_numbers`: numbers that a picture of a pass leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from course_utils.checks.compare import describe
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_02_how_backward_works import LESSON
from course_utils.checks.judges.predictions import one_case
from course_utils.checks.judges.programs import Choices
from course_utils.checks.scenes.lesson_02_how_backward_works.missing_numbers import missing, passed

_TABLE = Choices(
    lambda: dict(missing(passed())),
    reasons={
        "A": "The node of t received 2. To p it sends that times the other factor, s = 5.",
        "B": "The difference received 24. What is subtracted gets it with its sign turned.",
        "C": "p is used twice, in t and in s. The engine added what both uses sent, 10 and 24, before the node ran.",
        "D": "The node of p received 34. To a it sends that times the other factor, 4.",
    },
)


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    value = seen["value"]
    odd = {key: entry for key, entry in value.items() if _no_number(entry)} if isinstance(value, dict) else {}
    for key, entry in odd.items():
        yield Finding("kind", False, f"Your entry for {key} is {describe(entry)}; expected a number.")
        return
    yield from _TABLE.judge(case, seen)


def _no_number(entry: Value) -> bool:
    """Say whether an entry is of a kind that no right one can have."""
    return isinstance(entry, (str, bool, list, dict)) or (isinstance(entry, Array) and bool(entry.shape))


EXERCISE = Exercise(
    id="missing_numbers",
    title="Four numbers are missing",
    lesson=LESSON,
    difficulty=1,
    minutes=6,
    points=2,
    call=None,
    cases=one_case,
    judge=_judge,
    hints=(
        "Go through the turns in their order. For each node: what does it receive, and by what does it multiply that "
        "for each of its inputs?",
        "A product sends to each factor what it received, times the other factor. A difference sends on what it "
        "received, with the sign turned for what is subtracted. A node to which two arrows lead receives their sum.",
        "A: turn 2 received 2, and beside p stands s = 5. B: turn 3 received 24, and c is subtracted. C: add the "
        "numbers at the two arrows that lead into that node. D: C times the other factor, which the node saved.",
    ),
    debrief=_TABLE.debrief,
    misconceptions=(
        Misconception(
            "the factor alone",
            "At a product you gave the other factor alone. What the product sends is that factor times what it "
            "received.",
            _TABLE.any_but(
                {"A": 5.0}, {"D": 4.0}, {"A": 5.0, "D": 4.0}, *({"A": 5.0, "C": 29.0, "D": d} for d in (4.0, 116.0))
            ),
        ),
        Misconception(
            "a factor's own value",
            "At a product your number is what it received times the value of the very input that the number goes to. "
            "The product sends to each factor what it received, times the value of the other one.",
            _TABLE.any_but(
                {"A": 24.0},
                {"D": 102.0},
                {"A": 24.0, "D": 102.0},
                *({"A": 24.0, "C": 48.0, "D": d} for d in (144.0, 192.0)),
            ),
        ),
        Misconception(
            "no factor",
            "At a product your number is what it received, without a factor. The product sends to each factor what it "
            "received, times the value of the other one.",
            _TABLE.any_but(
                {"A": 2.0}, {"D": 34.0}, {"A": 2.0, "D": 34.0}, *({"A": 2.0, "C": 26.0, "D": d} for d in (26.0, 104.0))
            ),
        ),
        Misconception(
            "one use counts",
            "You let one of the two gradients for p count, and not the other. p is used twice, and its node receives "
            "the sum of both.",
            _TABLE.any_but(
                {"C": 24.0}, {"C": 10.0}, {"C": 24.0, "D": 96.0}, {"C": 10.0, "D": 40.0}, {"D": 96.0}, {"D": 40.0}
            ),
        ),
        Misconception(
            "uses are multiplied",
            "You multiplied the two gradients for p with each other. Numbers are multiplied along a path; where paths "
            "meet, they are added.",
            _TABLE.any_but({"C": 240.0}, {"C": 240.0, "D": 960.0}),
        ),
        Misconception(
            "the sign is lost",
            "You sent on through the difference what it had received, unchanged. That is right for what it subtracts "
            "from; for what is subtracted the sign turns.",
            _TABLE.any_but({"B": 24.0}),
        ),
    ),
)
