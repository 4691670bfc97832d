"""Judging `nth_derivative`: the nth derivative."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch

from course_utils.checks.compare import OF_VALUES, close, counted, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_05_higher_order_gradients import LESSON
from course_utils.checks.judges.lesson_05_higher_order_gradients.untouched import clean
from course_utils.checks.judges.loops import times
from course_utils.checks.scenes.lesson_05_higher_order_gradients.maps import doubles


def _cases(seed: int) -> Iterator[Case]:
    trials: dict[str, tuple[str, int, tuple[int, ...], bool]] = {
        "a sine, n = 4": ("sine", 4, (2, 3), False),
        "a polynomial, n = 3": ("polynomial", 3, (3,), True),
        "an exponential, n = 1": ("exponential", 1, (), False),
        "an exponential, n = 5": ("exponential", 5, (3, 2), True),
        "a sine times a parameter of f, n = 0": ("weighted sine", 0, (3,), True),
        "a line, n = 2": ("line", 2, (3,), False),
        "a line whose slope is a parameter of f, n = 2": ("weighted line", 2, (3,), False),
        "a constant, n = 1": ("constant", 1, (2,), False),
        "a polynomial of degree 4, n = 6": ("polynomial", 6, (2, 1), False),
        "a sine times a parameter of f, n = 4": ("weighted sine", 4, (2, 3), True),
        "a sine at 0, n = 3": ("sine", 3, (2,), False),
    }
    for offset, (name, (function, n, shape, requires_grad)) in enumerate(trials.items()):
        x = doubles(seed + offset, *shape)
        if name == "a sine at 0, n = 3":  # the second derivative is 0 there, and the third is not
            x = torch.zeros_like(x)
        if name == "a line, n = 2":
            x = x.float()
        if name == "an exponential, n = 1":  # so small and so large that changes meant to be safe show
            x = x.abs() + 30
        if name == "an exponential, n = 5":
            x = -(x.abs() + 20).float()
        yield Case(name, {"function": function, "n": n, "x": Array.of(x), "requires_grad": requires_grad})


def _formula(case: Case, n: int) -> torch.Tensor:
    """Return the nth derivative at x, by a formula."""
    x = case.given["x"].tensor()
    match case.given["function"]:
        case "sine":
            return 1.5**n * torch.sin(1.5 * x + n * math.pi / 2)
        case "weighted sine":
            return 1.7 * 1.5**n * torch.sin(1.5 * x + n * math.pi / 2)
        case "exponential":
            return (-0.7) ** n * torch.exp(-0.7 * x)
        case "line":
            return [2.5 * x + 1.5, torch.full_like(x, 2.5)][n] if n < 2 else torch.zeros_like(x)
        case "constant":
            return torch.full_like(x, 0.0 if n else 3.5)
        case "weighted line":
            return [1.7 * x, torch.full_like(x, 1.7)][n] if n < 2 else torch.zeros_like(x)
    powers = {4: 2.0, 3: -3.0, 1: 5.0}
    terms = [math.perm(k, n) * factor * x ** (k - n) for k, factor in powers.items() if k >= n]
    return sum(terms, torch.zeros_like(x))


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    n = case.given["n"]
    calls, passes = seen["calls"], seen["passes"]
    yield Finding("calls", calls == 1, f"You called f {times(calls)}; one call is enough.")
    yield right_value(seen["returned"], _formula(case, n), "What you returned")
    yield from clean(seen, ("x",))
    yield Finding("passes", passes <= n, f"{counted(passes)} ran; the derivative number {n} takes {n}.")


def _is_sum(case: Case, seen: Observation) -> bool | None:
    """Tell the result of passes that add to one `.grad`: each turns the sum g so far into g + g'.

    None where that sum is one derivative by itself.
    """
    n = case.given["n"]
    sums = (math.comb(n - 1, k) * _formula(case, k + 1) for k in range(n))
    if n < 2 or not close(seen["returned"], sum(sums, torch.zeros(()))):
        return False
    return None if any(close(seen["returned"], _formula(case, k)) for k in range(n + 1)) else True


def _is_next(case: Case, seen: Observation) -> bool:
    """Tell the derivative after the one that was asked for. Of zeros, a pass too many tells."""
    n, after = case.given["n"], _formula(case, case.given["n"] + 1)
    zero = close(Array.of(torch.zeros_like(after)), after)  # of sines at 0 all but the rounding is zero
    other = seen["passes"] > n or (not zero and not close(seen["returned"], _formula(case, n)))
    return close(seen["returned"], after) and other


def _unrecorded(case: Case, seen: Observation) -> bool:
    """Tell zeros that came about because no pass was recorded."""
    returned = seen["returned"]
    zero = isinstance(returned, Array) and not bool(returned.tensor().any())
    return case.given["n"] > 1 and zero and seen["passes"] > 0 and not seen["recorded passes"]


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    passes = {case.name: ran["passes"] for case, ran in seen}
    fifth, sixth = passes["an exponential, n = 5"], passes["a polynomial of degree 4, n = 6"]
    if not fifth:
        yield "Your function ran no backward pass: in forward mode the derivative is computed along with f itself."
        return
    yield f"For the fifth derivative of an exponential your function ran {counted(fifth)}, each over a longer graph."
    if sixth < 6:
        yield f"For the sixth derivative of a polynomial of degree 4 it ran {counted(sixth)}, and then had its zeros."


EXERCISE = Exercise(
    id="nth_derivative",
    title="The nth derivative",
    lesson=LESSON,
    difficulty=2,
    minutes=10,
    points=2,
    call="nth_derivative(f, x, n)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "The derivative of a derivative: run a pass over the result of the last one. What has to be recorded for that?",
        "Take a tensor of your own from x, call f once, and loop n times. Each number of the result depends on one "
        "number of x alone, so the sum has all derivatives as its gradient. Before a pass ask whether what you "
        "have depends on your tensor at all.",
        "own = x.detach().requires_grad_(); y = f(own). n times: if y does not require grad, return zeros; "
        "else y becomes the gradient of y.sum() for own, with create_graph and materialize_grads (y may have a graph "
        "that leads to a parameter of f only). At the end return y detached.",
    ),
    misconceptions=(
        Misconception(
            "all derivatives added up",
            "Your answer adds up derivatives of several orders. Passes that write to `.grad` add to what the passes "
            "before them left there.",
            _is_sum,
        ),
        Misconception(
            "one pass too many",
            "Your answer is the derivative after the one that was asked for.",
            _is_next,
            among=OF_VALUES,
        ),
        Misconception(
            "retained, not recorded",
            "From the second derivative on your answer is zero. The passes before were not recorded, so what they "
            "gave counted as a constant.",
            _unrecorded,
        ),
    ),
)
