"""Judging `rescue`: start a deep net so that gradients arrive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_08_intermediate_gradients import LESSON
from course_utils.checks.judges.lesson_08_intermediate_gradients.layers import things

# Wide enough for sound starts whatever they draw: of 80 with orthogonal weights one was at 0.016, and one at 1/36.
_FACTOR = 100.0
_SIZES = 0.005, 50.0


def _cases(seed: int) -> list[Case]:
    widths = [31, 24, 40, 28, 36, 22, 33, 27, 38, 25]
    wider = [18, *(2 * width for width in (*widths, *widths[1:]))]  # than the first: one size for all weights fails
    return [
        Case("20 layers with ReLU", {"seed": seed, "activation": "relu", "widths": wider}),
        Case("16 layers with tanh", {"seed": seed + 1, "activation": "tanh", "widths": [*widths, *widths[:6]]}),
    ]


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    message = "Your function replaced or changed layers. Only the numbers in their parameters may change."
    yield Finding("model", seen["kept"] is True, message)
    changed = seen["changed"]
    message = f"Your function changed {things(changed)}. Only the numbers in parameters may change."
    yield Finding("model", not changed, message)
    gradients, outputs = _floats(seen["gradients"]), _floats(seen["outputs"])
    if not gradients or not outputs:
        message = "After your function the model's result has no graph."
        if seen["outputs"]:
            message = (
                "After your function activations of the model, or their gradients, are NaN: numbers overflow, or a "
            )
            message += "parameter holds NaN."
        yield Finding("graph", bool(changed) or seen["kept"] is not True, message)
        return
    share = gradients[0] / gradients[-1] if gradients[-1] else 0.0
    message = (
        f"The gradient at the first activation is {share:.2g} times that at the last; it should be between "
        f"1/{_FACTOR:g} and {_FACTOR:g} times."
    )
    if not gradients[-1]:
        message = "No gradient arrives at any activation, not even at the last one: all are zero."
    yield Finding("gradient", 1 / _FACTOR <= share <= _FACTOR, message)
    low, high = min(outputs), max(outputs)
    message = (
        f"The activations have sizes from {low:.2g} to {high:.2g} (root mean squares); expected is {_SIZES[0]:g} to "
        f"{_SIZES[1]:g}."
    )
    yield Finding("activations", _SIZES[0] <= low and high <= _SIZES[1], message)
    alike = [f"In linear layer {n} {what}." for n, what in enumerate(seen["units"], 1) if what]
    yield Finding("units", not alike, next(iter(alike), ""))
    spread = min(_floats(seen["spread"]), default=0.0)
    message = f"Behind one of the activations, numbers of different inputs differ by {spread:.2g} only: too little."
    yield Finding("spread", spread >= 0.005, message)


def _floats(values: Any) -> list[float]:
    if not isinstance(values, list) or not all(isinstance(value, float) and value == value for value in values):
        return []
    return values


def _share(seen: Observation) -> float:
    gradients = _floats(seen["gradients"])
    return gradients[0] / gradients[-1] if gradients and gradients[-1] else 0.0


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    for case, it in seen:
        first, last = it["gradients"][0], it["gradients"][-1]
        long = "shorter" if first < last else "longer"
        yield (
            f"{case.name}: the gradient at the first activation is {long} than at the last, by less than "
            f"{_FACTOR:g} times."
        )


EXERCISE = Exercise(
    id="rescue",
    title="Start a deep net so that gradients arrive",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call="rescue(model)",
    cases=_cases,
    judge=_judge,
    hints=(
        "On its way back a gradient is multiplied by each layer's weights. If that makes it shorter on average, twenty "
        "layers make it vanish. How large must weights be so that it stays as long?",
        "A sum of n products grows with the square root of n, so the weights' size is gain / sqrt(n). A ReLU lets half "
        "of the gradient pass, which takes a gain of sqrt(2). A tanh near zero changes little. nn.init knows gains.",
        "Go through model.modules(). For each nn.Linear: nn.init.kaiming_normal_(weight, nonlinearity='relu') if the "
        "model has ReLUs, otherwise nn.init.xavier_normal_(weight, gain=nn.init.calculate_gain('tanh')), and zeros in "
        "the bias.",
    ),
    debrief=_debrief,
    misconceptions=(
        Misconception(
            "another model",
            "In a case that fails, not one number in the model that your function was given has changed. What it "
            "starts anew there is another model, or nothing.",
            lambda case, seen: seen["moved"] is False,
        ),
        Misconception(
            "still vanishing",
            "The gradient at the first activation is still more than a thousand times smaller than at the last: "
            "weights, in all layers or in some, are too small for the depth, or what goes into the activations is "
            "where these let little of the gradient pass, as a tanh does far from zero and a ReLU below it.",
            lambda case, seen: (
                seen["moved"] is True
                and 0 < _share(seen) < 1e-3
                and max(_floats(seen["outputs"]), default=99) < _SIZES[1]
            ),
        ),
        Misconception(
            "too much",
            "Your weights or biases are too large: activations or gradients come out larger than asked for.",
            lambda case, seen: (
                max(_floats(seen["outputs"]), default=0) > _SIZES[1]
                or (case.given["activation"] == "tanh" and _share(seen) > _FACTOR)
            ),
        ),
        Misconception(
            "new parameters",
            "You put new parameters into the layers. An optimizer that was made before still holds the old ones, and "
            "would train those.",
            lambda case, seen: (
                seen["kept"] is True
                and isinstance(seen["changed"], list)
                and any(isinstance(what, str) and what.endswith("for another tensor") for what in seen["changed"])
            ),
        ),
    ),
)
