"""Exercises of lesson 10 in which a Function is repaired or verified."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import torch

from course_utils.checks.compare import close, describe, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.predict_10 import LESSON
from course_utils.checks.lessons.writing_10 import left_alone, nothing_on_ctx, one_function, spread, to_rounding
from course_utils.checks.observing.functions_10 import FUNCTIONS

# swish: two inputs, one of them broadcast.


def _swish_cases(seed: int) -> list[Case]:
    shapes: dict[str, tuple[tuple[int, ...], bool]] = {
        "one beta": ((), True),
        "a beta for each column": ((4,), True),
        "a beta for each row": ((3, 1), True),
        "beta is frozen": ((4,), False),
    }
    return [
        Case(
            name,
            {
                "x": Array.of(spread(seed + n, 3, 4)),
                "beta": Array.of(spread(seed + n + 20, *shape)),
                "direction": Array.of(spread(seed + n + 40, 3, 4)),
                "learned": learned,
            },
        )
        for n, (name, (shape, learned)) in enumerate(shapes.items())
    ]


def _swish(case: Case, ones: bool = False) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return value and gradients as autograd has them; with ones, the gradients for an incoming gradient of ones."""
    x, beta, direction = (case.given[name].tensor() for name in ("x", "beta", "direction"))
    wanted = [x.requires_grad_(), beta.requires_grad_()] if case.given["learned"] else [x.requires_grad_()]
    y = x * torch.sigmoid(beta * x)
    incoming = torch.ones_like(direction) if ones else direction
    return y.detach(), list(torch.autograd.grad(y, wanted, incoming))


def _judge_swish(case: Case, seen: Observation) -> Iterator[Finding]:
    y, gradients = _swish(case)
    yield left_alone(seen)
    yield right_value(seen["returned"], y, "What you returned")
    yield one_function(seen)
    if not seen["attached"]:
        return
    for name, mine, right in zip(("x", "beta"), seen["gradients"], gradients, strict=False):
        found = to_rounding(mine, right, f"The gradient of {name}")
        yield Finding(f"{name} {found.prop}", found.ok, found.message)
    safe = all(_safe(written, gradients) for written in seen["written"])
    message = "After a write to x or beta, your backward ran and gave other gradients than before, without an error."
    yield Finding("noticed", safe, message)
    message = "After the pass your Function still holds a tensor. What save_for_backward gets is freed by a pass."
    yield Finding("freed", not seen["attribute"] and not seen["kept"], message)


def _safe(written: Value, gradients: list[torch.Tensor]) -> bool:
    """Return whether a pass after a write raised, or gave the gradients of what the forward had computed."""
    if not isinstance(written, list) or len(written) != len(gradients):
        return written == "raised"
    return all(close(mine, right) for mine, right in zip(written, gradients, strict=True))


def _right_swish(case: Case, seen: Observation) -> bool:
    if not seen["attached"]:
        return False
    return all(close(mine, right) for mine, right in zip(seen["gradients"], _swish(case)[1], strict=True))


def _beta_alone(case: Case, seen: Observation) -> bool:
    """Return whether x has the right gradient, and beta the one for an incoming gradient of ones."""
    if not seen["attached"] or not case.given["learned"]:
        return False
    (x, _), (_, beta) = _swish(case)[1], _swish(case, ones=True)[1]
    return close(seen["gradients"][0], x) and close(seen["gradients"][1], beta)


swish = Exercise(
    id="swish",
    title="Repair a Function with four faults",
    lesson=LESSON,
    difficulty=3,
    minutes=20,
    points=3,
    call="swish(x, beta)",
    cases=_swish_cases,
    judge=_judge_swish,
    hints=(
        "Run it once with a beta that is one number. Read the error, and count what backward returns, in which order.",
        "Compare each returned gradient with its input: position, shape, and whether the incoming gradient is in it. "
        "Then look at where the tensors are kept.",
        "ctx.save_for_backward(x, beta). backward returns two gradients in the order of forward's inputs, each "
        "multiplied by g. A gradient of the broadcast shape may be returned as it is, or summed by sum_to_size.",
    ),
    misconceptions=(
        Misconception(
            "tensors on ctx",
            "Your gradients are right. But tensors are kept as attributes of ctx: a write to them goes unnoticed, and "
            "they outlive the pass.",
            lambda case, seen: _right_swish(case, seen) and seen["attribute"],
        ),
        Misconception(
            "beta without g",
            "The gradient of beta is what it would be if the incoming gradient were one everywhere.",
            _beta_alone,
        ),
        Misconception(
            "summed too far",
            "Your gradient of beta fits some shapes of beta and raises for others. It was summed over too many "
            "numbers, or over the wrong ones.",
            ended=("RuntimeError",),
            ended_in=("a beta for each column", "a beta for each row"),
        ),
    ),
)


# agrees: the truth about a Function is PyTorch's own gradcheck.

_TO_VERIFY = {
    "a cube": "cube",
    "a steep exponential": "steep",
    "a matrix product": "mix",
    "a softmax": "softmax",
    "reversed columns": "flip",
    "a sum of squares": "total",
    "a sine, wrong by one percent": "sine, slightly off",
    "a sine, wrong at one place": "sine without the last",
    "a sine that ignores what comes in": "sine without incoming",
    "a softmax, wrong beside the diagonal": "softmax, only its diagonal",
    "a softmax with a gradient of zeros": "softmax without a gradient",
    "reversed columns, gradients not reversed": "flip not flipped back",
    "a cumulated sum, cumulated the same way back": "cumulated forwards",
    "a matrix product, rows exchanged on the way back": "mix, rows exchanged",
    "a backward that returns nothing": "nothing returned",
}


def _functions(seed: int) -> list[Case]:
    return [
        Case(
            name,
            {"function": function, "x": Array.of(spread(seed + n, 2, 3)), "transposed": function in ("cube", "mix")},
        )
        for n, (name, function) in enumerate(_TO_VERIFY.items())
    ]


@cache
def _truth(function: str, seed_of_x: bytes) -> bool:
    x = torch.frombuffer(bytearray(seed_of_x), dtype=torch.float64).reshape(2, 3).requires_grad_()
    return bool(torch.autograd.gradcheck(FUNCTIONS[function], x, raise_exception=False))


def _is_right(case: Case) -> bool:
    return _truth(case.given["function"], case.given["x"].data)


def _verdict(returned: Value) -> bool | None:
    """Return what an answer says of a Function; None where it says neither True nor False."""
    if isinstance(returned, Array) and returned.dtype == "bool" and returned.shape == ():
        return bool(returned.tensor())
    return returned if isinstance(returned, bool) else None


def _judge_agrees(case: Case, seen: Observation) -> Iterator[Finding]:
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
    return fair and case.given["function"] in functions and _verdict(seen["returned"]) is not _is_right(case)


agrees = Exercise(
    id="agrees",
    title="Verify a backward",
    lesson=LESSON,
    difficulty=3,
    minutes=25,
    points=3,
    call="agrees(function, x)",
    cases=_functions,
    judge=_judge_agrees,
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
            "Your function finds wrong gradients of result.sum(), and nothing else. Faults that another incoming "
            "gradient would show stay hidden.",
            lambda case, seen: _fooled(
                case,
                seen,
                *("sine without incoming", "softmax without a gradient", "flip not flipped back"),
            ),
        ),
        Misconception(
            "all numbers at once",
            "Your function moves all numbers of x together. Faults whose effects cancel, or lie beside one another, "
            "stay hidden.",
            lambda case, seen: _fooled(
                case, seen, "softmax without a gradient", "flip not flipped back", "mix, rows exchanged"
            ),
        ),
        Misconception(
            "a coarse difference",
            "Your function calls a steep Function wrong though it is right. A large step, or a step to one side only, "
            "gives a rough slope.",
            lambda case, seen: _fooled(case, seen, "steep", "cube", "total") and _is_right(case),
        ),
        Misconception(
            "too tolerant",
            "Your function lets an error of one percent pass. In float64 central differences are far better than that.",
            lambda case, seen: _fooled(case, seen, "sine, slightly off"),
        ),
    ),
)


# log_cosh: right at first sight, and no further.


def _smooth(seed: int) -> list[Case]:
    shapes = {"a matrix": (2, 5), "one row": (7,)}
    return [
        Case(
            name,
            {"x": Array.of(spread(seed + n, *shape)), "direction": Array.of(spread(seed + n + 3, *shape))},
        )
        for n, (name, shape) in enumerate(shapes.items())
    ]


def _log_cosh(case: Case) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return value and three derivatives, each weighted by the direction, as autograd has them."""
    x, direction = case.given["x"].tensor().requires_grad_(), case.given["direction"].tensor()
    y = value = x.cosh().log()
    derivatives = []
    for _ in range(3):
        (y,) = torch.autograd.grad(y, x, direction, create_graph=True)
        derivatives.append(y.detach())
    return value.detach(), derivatives


def _judge_log_cosh(case: Case, seen: Observation) -> Iterator[Finding]:
    y, derivatives = _log_cosh(case)
    yield left_alone(seen)
    yield right_value(seen["returned"], y, "What you returned")
    yield one_function(seen)
    if not seen["attached"]:
        return
    yield nothing_on_ctx(seen)
    for number, right in enumerate(derivatives):
        which = ("first", "second", "third")[number]
        if number >= len(seen["derivatives"]):
            before = ("", "first", "second")[number]
            message = f"There is no {which} derivative: the {before} one has no graph that leads to x."
            yield Finding(f"{which} derivative", False, message)
            return
        found = to_rounding(seen["derivatives"][number], right, f"The {which} derivative")
        yield Finding(f"{which} derivative", found.ok, found.message)


def _ends_after(case: Case, seen: Observation, count: int) -> bool:
    if not seen["attached"] or len(seen["derivatives"]) != count:
        return False
    right = _log_cosh(case)[1]
    return all(close(mine, one) for mine, one in zip(seen["derivatives"], right, strict=False))


log_cosh = Exercise(
    id="log_cosh",
    title="A second derivative that was lost",
    lesson=LESSON,
    difficulty=3,
    minutes=20,
    points=3,
    call="log_cosh(x)",
    cases=_smooth,
    judge=_judge_log_cosh,
    hints=(
        "The saved tanh is a number without history. Where would the second derivative of log cosh have to come from?",
        "What is saved must be an input or an output of the Function: those lead back to x. Anything else must be "
        "computed from them inside backward, where it is recorded.",
        "Save x. In backward compute x.tanh() and return it times the incoming gradient. With create_graph=True "
        "PyTorch records these two operations, and so knows their derivatives.",
    ),
    misconceptions=(
        Misconception(
            "an intermediate is saved",
            "The first derivative is right and leads nowhere. What backward multiplies by has no connection to x.",
            lambda case, seen: _ends_after(case, seen, 1),
        ),
        Misconception(
            "only one step farther",
            "First and second derivative are right, and the third is missing. The second one leads nowhere.",
            lambda case, seen: _ends_after(case, seen, 2),
        ),
    ),
)
