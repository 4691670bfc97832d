"""Judging `hvp`: a Hessian-vector product without the Hessian."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from course_utils.checks.compare import close, counted, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_05_higher_order_gradients import LESSON
from course_utils.checks.judges.lesson_05_higher_order_gradients.untouched import clean
from course_utils.checks.judges.loops import times
from course_utils.checks.judges.remembered import remembered
from course_utils.checks.scenes.lesson_05_higher_order_gradients.hvp import scalar
from course_utils.checks.scenes.lesson_05_higher_order_gradients.maps import doubles

# No tensor may have more numbers than this many times x: the n by n Hessian of the large case has far more.
_TIMES = 20
_PASSES = 3  # two do; torch.autograd.functional.hvp takes a third


def _cases(seed: int) -> Iterator[Case]:
    trials: dict[str, tuple[str, tuple[int, ...], bool]] = {
        "a vector": ("steep", (5,), False),
        "a matrix": ("weighted softmax", (3, 3), True),
        "300 numbers": ("mixed", (300,), True),
        "linear in all of x": ("line", (), False),
        "linear in a part of x": ("half a line", (3, 2), True),
        "a line whose slope is a parameter of f": ("weighted line", (4, 1), False),
        "a point where the gradient is zero": ("at rest", (4,), True),
        "v holds zeros only": ("mixed", (2, 2), False),
        "one number, and no line": ("mixed", (), False),
    }
    for offset, (name, (function, shape, requires_grad)) in enumerate(trials.items()):
        x, v = doubles(seed + offset, *shape), doubles(seed + offset + 50, *shape)
        if function == "half a line":
            x, v = x.float(), v.float()
        if function == "at rest":
            x = torch.zeros_like(x)
        v = torch.zeros_like(v) if name == "v holds zeros only" else v
        given = {"function": function, "x": Array.of(x), "v": Array.of(v), "requires_grad": requires_grad}
        yield Case(name, {**given, "again": not offset})


@remembered
def _measured_product(case: Case) -> torch.Tensor:
    """Return the Hessian times v, from differences of gradients along v."""
    f, given, v = scalar(case.given["function"]), case.given["x"].tensor(), case.given["v"].tensor().double()
    x, h = given.double(), 1e-3

    def change(by: float) -> torch.Tensor:
        above, below = ((x + shift * v).requires_grad_() for shift in (by, -by))
        result: torch.Tensor = torch.autograd.grad(f(above), above)[0] - torch.autograd.grad(f(below), below)[0]
        return result

    measured = (8 * change(h) - change(2 * h)) / (12 * h)  # the error falls with the fourth power of h
    return measured.to(given.dtype)


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    n = case.given["x"].tensor().numel()
    yield Finding("calls", seen["calls"] == 1, f"You called f {times(seen['calls'])}; one call is enough.")
    text = "Your function called f at several points at once, through vmap. One point, x, is enough."
    yield Finding("one point", not seen["batched"], text)
    yield right_value(seen["returned"], _measured_product(case), "What you returned")
    yield from clean(seen, ("x", "v"))
    text = (
        f"{counted(seen['passes'])} ran; {_PASSES} are enough: the second starts from the gradient, with v as its seed."
    )
    yield Finding("passes", seen["passes"] <= _PASSES, text)
    largest = seen["largest"]  # 0 for a small x, whose Hessian is small as well
    text = f"You made a tensor of {largest:,} numbers for an x of {n}. Nothing larger than {_TIMES * n:,} is needed."
    yield Finding("size", largest <= _TIMES * n, text)


def _gradient_by(case: Case) -> torch.Tensor:
    result: torch.Tensor = torch.func.grad(scalar(case.given["function"]))(case.given["x"].tensor())
    return result.detach()


def _row_sums(case: Case) -> torch.Tensor:
    ones = Array.of(torch.ones_like(case.given["v"].tensor()))
    return _measured_product(Case(case.name, {**case.given, "v": ones}))


def _gave(case: Case, seen: Observation, factors: torch.Tensor) -> bool | None:
    """Tell a result that is v times some factors, where the right one is another; None where both give zeros."""
    returned = seen["returned"]
    gave = close(returned, factors * case.given["v"].tensor()) and not close(returned, _measured_product(case))
    return None if gave and not bool(returned.tensor().any()) else gave


def _unrecorded(case: Case, seen: Observation) -> bool:
    """Tell zeros that came about because no pass was recorded."""
    returned = seen["returned"]
    zero = isinstance(returned, Array) and not bool(returned.tensor().any())
    return zero and seen["passes"] > 0 and not seen["recorded passes"]


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, ran = next((case, ran) for case, ran in seen if case.name == "300 numbers")
    n = case.given["x"].tensor().numel()
    passes, largest = counted(ran["passes"]), ran["largest"]
    yield f"For {n} numbers the check saw {passes}, and no tensor of more than {largest:,} numbers."
    yield f"The Hessian would have {n * n:,} numbers, and row by row it would take {n + 1} passes."


EXERCISE = Exercise(
    id="hvp",
    title="A Hessian-vector product without the Hessian",
    lesson=LESSON,
    difficulty=3,
    minutes=12,
    points=3,
    call="hvp(f, x, v)",
    counted=True,
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "A pass gives a vector times a Jacobian, without the Jacobian. Of which function is the Hessian the Jacobian?",
        "The Hessian is the Jacobian of the gradient. Record the first pass, then run a second one from the gradient, "
        "with v as its seed. What if the gradient does not depend on x?",
        "own = x.detach().requires_grad_(); the gradient of f(own) with create_graph; if it requires no grad, zeros; "
        "else grad(gradient, own, v, materialize_grads=True). Or: torch.func.jvp of torch.func.grad(f) at x along v, "
        "second result, detached.",
    ),
    misconceptions=(
        Misconception(
            "the gradient times v",
            "What you returned is the gradient times v, number by number. That is a first derivative.",
            lambda case, seen: _gave(case, seen, _gradient_by(case)),
        ),
        Misconception(
            "row sums times v",
            "What you returned is the sum of each row of the Hessian, times v: as from a second pass that starts from "
            "the sum of the gradient, where v comes too late.",
            lambda case, seen: _gave(case, seen, _row_sums(case)),
        ),
        Misconception(
            "not recorded",
            "What you returned is zero. No pass was recorded, so that the gradient counts as a constant: the first one "
            "needs create_graph=True.",
            _unrecorded,
        ),
        Misconception(
            "the whole Hessian",
            "On the way you made a tensor with at least as many numbers as the Hessian has: those of x, squared.",
            lambda case, seen: seen["largest"] >= case.given["x"].tensor().numel() ** 2,
        ),
    ),
)
