"""Judging `largest_rate`: the largest learning rate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from course_utils.checks.compare import describe, told_apart
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_05_higher_order_gradients import LESSON

_CALLS = 100
_LEAST = 0.9
_ROUNDING = 1e-9
_TURNED = (16.0, 48.0)  # of the sum and the difference of two numbers
OURS = 0.99  # tests/answers has the answer that reaches it


def _cases(seed: int) -> list[Case]:
    bowls = {
        "a bowl of 12 numbers": [0.000003 * 1.7**k for k in range(12)],
        "a single number": [250.0],
        "30 numbers, four nearly as steep as the steepest": [*(0.1 * k for k in range(1, 26)), 3.2, 3.3, 3.4, 3.5, 4.0],
        "steep in one of 120 directions": [*([1.0] * 119), 90000.0],  # more than calls of loss are allowed
        "steep between two of 6 numbers, begun where that is right": [1.0, 0.5, 2.0, 1.5, *_TURNED],
    }
    return [
        Case(name, {"seed": seed + 10 * place, "curvatures": curvatures, "along the axes": "numbers, begun" in name})
        for place, (name, curvatures) in enumerate(bowls.items())
    ]


def _border(case: Case) -> float:
    """Return the rate above which a step multiplies the distance along the steepest direction by more than 1."""
    return 2 / float(max(case.given["curvatures"]))


def _number(returned: Value) -> float | None:
    if isinstance(returned, Array) and returned.tensor().numel() == 1 and not returned.tensor().is_complex():
        return float(returned.tensor())
    return float(returned) if isinstance(returned, int | float) and not isinstance(returned, bool) else None


def _share(case: Case, seen: Observation) -> float:
    """Return the answer as a share of the border; 0 where it is no number."""
    return (_number(seen["returned"]) or 0.0) / _border(case)


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    rate = _number(seen["returned"])
    text = f"What you returned is {describe(seen['returned'])}; expected one number."
    yield Finding("number", rate is not None, text)
    if rate is not None:
        share = _share(case, seen)
        yours, border = told_apart(rate, _border(case))
        # A rate that is right but for rounding is on the border, and there nothing grows.
        text = f"With your rate, {yours}, gradient descent explodes: the border is {border}."
        yield Finding("explodes", share <= 1 + _ROUNDING, text)
        text = (
            f"Your rate is {max(share, 0):.2f} of the border. At least {_LEAST} is asked; ours reaches {OURS}, and the "
            "limit is 1."
        )
        if rate < 0:
            text = f"Your rate is {yours}: below 0, so that each step goes up the bowl. The border is {border}."
        yield Finding("large", share >= _LEAST - _ROUNDING, text)
    calls = seen["calls"]
    yield Finding("calls", calls <= _CALLS, f"You called loss {calls} times; {_CALLS} are allowed.")
    yield Finding("moved", not seen["moved"], "Your function changed the numbers in w.")
    yield Finding("graded", not seen["graded"], "Your function changed w.grad. Leave it as it was.")


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    least, case, ran = min(((_share(case, ran), case, ran) for case, ran in seen), key=lambda it: round(it[0], 6))
    calls = "1 call" if ran["calls"] == 1 else f"{ran['calls']} calls"
    yield (
        f"Your smallest rate is {least:.2f} of the border ({case.name}, {calls} of loss). Ours reaches {OURS}; the "
        "limit is 1."
    )
    if least > OURS + 0.005:
        yield "That is nearer to the border than ours."
    elif least > OURS - 0.005:
        yield "That is as near to the border as ours."


EXERCISE = Exercise(
    id="largest_rate",
    title="The largest learning rate",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call="largest_rate(loss, w)",
    cases=_cases,
    judge=_judge,
    hints=(
        "On a bowl a step multiplies the distance to the bottom, along a direction with curvature c, by 1 - rate * c. "
        "Which direction explodes first?",
        "The border is 2 over the largest curvature. Power iteration finds that: multiply a random vector by the "
        "Hessian, divide it by its length, again and again; the length is the curvature.",
        "One gradient with create_graph=True serves all products: grad(gradient, w, v, retain_graph=True). Start from "
        "a random v and take a hundred rounds. The curvature is found from below, so keep a margin: 0.99 * 2 / it.",
    ),
    misconceptions=(
        Misconception(
            "half of the border",
            "Your rate is about half of the border, which is at 2 over the largest curvature, and not at 1 over it.",
            lambda case, seen: 0.495 < _share(case, seen) < 0.52,
        ),
        Misconception(
            "a little above the border",
            "Your rate is a little above the border. If your largest curvature comes from power iteration: that is "
            "never too large and mostly a little too small, so 2 over it is too large. Do more rounds, and keep a "
            "margin.",
            lambda case, seen: 1 + _ROUNDING < _share(case, seen) < 1.25,
        ),
        Misconception(
            "a direction never seen",
            "On one bowl your rate is that of its second steepest direction. The steepest one lies across the slope at "
            "w there, across w, across each number alone but two, and across (1, ..., 1): what begins along one of "
            "these, power iteration or a descent, never meets it. Begin with random numbers.",
            lambda case, seen: (
                case.given["along the axes"] and 0.85 < _share(case, seen) * _TURNED[0] / _TURNED[1] < 1.05
            ),
        ),
    ),
    debrief=_debrief,
)
