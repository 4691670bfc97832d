"""Judging `agrees`: verify a backward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import torch

from course_utils.checks.compare import describe
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_10_custom_functions import LESSON
from course_utils.checks.judges.lesson_10_custom_functions.functions import left_alone, spread
from course_utils.checks.scenes.lesson_10_custom_functions.agrees import function as given_function

_TO_VERIFY = {
    "a cube": "cube",
    "a steep exponential": "steep",
    "a matrix product": "mix",
    "a softmax": "softmax",
    "reversed columns": "flip",
    "a sum of squares": "total",
    "a sine, wrong by one percent": "sine, slightly off",
    "a small sine, wrong by one percent": "small sine, off",
    "a sine, wrong at one place": "sine without the last",
    "a sine, its sign exchanged": "sine, sign exchanged",
    "a sine, NaN at one place": "sine, NaN at one place",
    "a cube, wrong below zero": "cube, wrong below zero",
    "an exponential, wrong by one percent where it is flat": "exponential, off where it is flat",
    "a sine that ignores what comes in": "sine without incoming",
    "a softmax, wrong beside the diagonal": "softmax, only its diagonal",
    "a softmax with a gradient of zeros": "softmax without a gradient",
    "reversed columns, gradients not reversed": "flip not flipped back",
    "a cumulated sum, cumulated the same way back": "cumulated forwards",
    "a matrix product, rows exchanged on the way back": "mix, rows exchanged",
    "a function that is level": "level",
    "a function that is level, NaN at one place": "level, NaN at one place",
    "a sine, wrong where each number is near 1 or -1": "sine, off in between",
    "a sum of squares, wrong by a half": "total, off",
    "a backward that returns nothing": "nothing returned",
    "a function that is level, and a backward that returns nothing": "level, nothing returned",
}


def _cases(seed: int) -> list[Case]:
    cases = []
    for n, (name, function) in enumerate(_TO_VERIFY.items()):
        x = spread(seed + n, 2, 3)
        if function == "flip":  # a step in proportion to the number would be none here
            x[0, 1] = 0
        if function == "sine, off in between":
            x = x.sign() * (0.84 + 0.2 * x.abs())
        cases.append(Case(name, {"function": function, "x": Array.of(x), "transposed": function in ("cube", "mix")}))
    return cases


@cache
def _truth(function: str, seed_of_x: bytes) -> bool:
    x = torch.frombuffer(bytearray(seed_of_x), dtype=torch.float64).reshape(2, 3).requires_grad_()
    return bool(torch.autograd.gradcheck(given_function(function), x, raise_exception=False))


def _is_right(case: Case) -> bool:
    return _truth(case.given["function"], case.given["x"].data)


def _verdict(returned: Value) -> bool | None:
    """Return what an answer says of a Function; None where it says neither True nor False."""
    if isinstance(returned, Array) and returned.dtype == "bool" and returned.shape == ():
        return bool(returned.tensor())
    return returned if isinstance(returned, bool) else None


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    said, truth = _verdict(seen["returned"]), _is_right(case)
    message = f"Your function returned {describe(seen['returned'])}; expected True or False."
    yield Finding("kind", said is not None, message)
    word = "right, and your function says False" if truth else "wrong, and your function says True"
    yield Finding("verdict", said is None or said is truth, f"The backward of this Function is {word}.")
    yield left_alone(seen)
    yield Finding("own", not seen["calls"], "You called PyTorch's gradcheck. Compare the gradients yourself.")


def _fooled(case: Case, seen: Observation, *functions: str) -> bool:
    """Return whether the answer says the opposite of the truth about one of these Functions."""
    fair = not seen["changed"] and not seen["calls"]
    return fair and case.given["function"] in functions and _verdict(seen["returned"]) is (not _is_right(case))


def _fooled_first(case: Case, seen: Observation, function: str, *further: str) -> bool | None:
    """Tell it by one Function; it is None where another of these fooled the answer, as it fools other answers."""
    return _fooled(case, seen, function) or (None if _fooled(case, seen, *further) else False)


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    right = sum(map(_is_right, (case for case, _ in seen)))
    yield f"You judged {len(seen)} Functions, of which {right} are right, as PyTorch's gradcheck does."
    yield "result.sum().backward() alone would not find a softmax with a gradient of zeros: its rows always sum to one."


EXERCISE = Exercise(
    id="agrees",
    title="Verify a backward",
    lesson=LESSON,
    difficulty=3,
    minutes=25,
    points=3,
    call="agrees(function, x)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "Wiggle one number of x by a little, up and down. How much does each number of the result change?",
        "Compare whole Jacobians, every number of the result against every number of x: column by column from central "
        "differences, row by row from backward with an incoming gradient that is one at one place and zero elsewhere.",
        "For each place of x: a clone plus 1e-6 there, a clone minus 1e-6, the difference of results divided by 2e-6. "
        "For each place of the result: a gradient of zeros with a one, torch.autograd.grad with allow_unused=True, and "
        "None counts as zeros. Stack both, and compare with torch.allclose.",
    ),
    misconceptions=(
        Misconception(
            "only the sum",
            "A backward that is right for the gradient of result.sum(), and wrong for another that may come in, passes "
            "your test. Compare each number of the result against each of x, also where nothing is to arrive.",
            lambda case, seen: _fooled_first(
                case, seen, "sine without incoming", "softmax without a gradient", "flip not flipped back"
            ),
        ),
        Misconception(
            "all numbers at once",
            "Your function moves all numbers of x together. Faults whose effects cancel, or lie beside one another, "
            "stay hidden.",
            lambda case, seen: _fooled_first(
                case, seen, "mix, rows exchanged", "softmax without a gradient", "flip not flipped back"
            ),
        ),
        Misconception(
            "a coarse difference",
            "Your function calls a steep Function wrong though it is right: the slope that it measures is rougher than "
            "the error that it allows. A large step, or a step to one side only, gives a rough slope.",
            lambda case, seen: _fooled_first(case, seen, "steep", "cube", "total", "softmax"),
        ),
        Misconception(
            "too tolerant",
            "Your function lets an error of one percent pass: everywhere, or in a small number beside large ones. In "
            "float64 central differences are far better than that, number by number.",
            lambda case, seen: _fooled(
                case, seen, "sine, slightly off", "small sine, off", "exponential, off where it is flat"
            ),
        ),
        Misconception(
            "NaN let through",
            "Your function lets a NaN pass. A NaN is not larger than any limit: ask whether the difference is within "
            "the limit, and not whether it is beyond.",
            lambda case, seen: _fooled(case, seen, "sine, NaN at one place", "level, NaN at one place"),
        ),
    ),
)
