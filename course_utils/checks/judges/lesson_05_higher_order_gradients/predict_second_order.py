"""Judging `predict_second_order`: number or error?"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch.autograd import grad

from course_utils.checks.compare import right_entries
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Misconception
from course_utils.checks.judges.lesson_05_higher_order_gradients import LESSON
from course_utils.checks.judges.predictions import Table, one_case

_AT = 1.5

_Statements = Callable[[torch.Tensor], torch.Tensor]


def _recorded(x: torch.Tensor) -> torch.Tensor:
    (g,) = grad(x**4, x, create_graph=True)
    return grad(g, x)[0]


def _retained(x: torch.Tensor) -> torch.Tensor:
    (x**4).backward(retain_graph=True)
    assert x.grad is not None
    x.grad.backward()
    return x.grad


def _two_backwards(x: torch.Tensor) -> torch.Tensor:
    (x**4).backward(create_graph=True)
    assert x.grad is not None
    x.grad.backward()
    result = x.grad.detach()
    x.grad = None  # or x and its gradient would refer to each other for good
    return result


def _recorded_then_again(x: torch.Tensor) -> torch.Tensor:
    y = x**4
    grad(y, x, create_graph=True)
    return grad(y, x)[0]


def _line(x: torch.Tensor) -> torch.Tensor:
    (g,) = grad(5 * x, x, create_graph=True)
    return grad(g, x)[0]


def _relu(x: torch.Tensor) -> torch.Tensor:
    (g,) = grad(torch.relu(3 * x), x, create_graph=True)
    return grad(g, x)[0]


def _product(x: torch.Tensor) -> torch.Tensor:
    (g,) = grad(x**4, x, create_graph=True)
    return grad(g * x, x)[0]


def _product_unrecorded(x: torch.Tensor) -> torch.Tensor:
    (g,) = grad(x**4, x)
    return grad(g * x, x)[0]


def _square(x: torch.Tensor) -> torch.Tensor:
    (g,) = grad(x**4, x, create_graph=True)
    return grad(g * g, x)[0]


def _third(x: torch.Tensor) -> torch.Tensor:
    (g,) = grad(x**4, x, create_graph=True)
    (h,) = grad(g, x, create_graph=True)
    return grad(h, x)[0]


_ENTRIES: dict[str, _Statements] = {
    "recorded": _recorded,
    "retained": _retained,
    "two_backwards": _two_backwards,
    "recorded_then_again": _recorded_then_again,
    "third": _third,
    "line": _line,
    "relu": _relu,
    "product": _product,
    "product_unrecorded": _product_unrecorded,
    "square": _square,
}


def _settled() -> dict[str, float | str]:
    """Run each entry: the number that it gives, or "error"."""
    found: dict[str, float | str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, statements in _ENTRIES.items():
            try:
                found[name] = statements(torch.tensor(_AT, requires_grad=True)).item()
            except RuntimeError:
                found[name] = "error"
    return found


def _only(name: str, *numbers: float) -> Callable[[Case, Observation], bool]:
    """Tell a prediction in which this one entry is wrong, and holds one of the numbers."""

    def explains(case: Case, seen: Observation) -> bool:
        value, right = seen["value"], _TABLE.right()
        if not isinstance(value, dict) or not isinstance(value.get(name), int | float):
            return False
        others = {key: entry for key, entry in value.items() if key != name}
        rest_right = all(f.ok for f in right_entries({**others, name: right[name]}, right, ""))
        return rest_right and any(abs(value[name] - number) < 1e-3 for number in numbers)

    return explains


def _no_error(case: Case, seen: Observation) -> bool:
    """Tell a prediction that is right, but for another word or None in place of "error"."""
    value, right = seen["value"], _TABLE.right()
    if not isinstance(value, dict) or value.keys() != right.keys():
        return False
    others = {name: value[name] for name, entry in right.items() if entry == "error" != value[name]}
    named = all(it is None or isinstance(it, str) for it in others.values())
    spelt = {**value, **dict.fromkeys(others, "error")}
    return named and bool(others) and all(f.ok for f in right_entries(spelt, right, ""))


_TABLE = Table(
    _settled,
    {
        "recorded": "The pass was recorded, so 4 x³ has a graph, and its derivative is 12 x².",
        "retained": "Retaining keeps what the forward pass saved. It records nothing, so x.grad has no graph.",
        "two_backwards": "The first pass wrote 13.5 into x.grad, and the second added 27.",
        "recorded_then_again": "create_graph=True retains as well, so the same pass runs again, and gives 4 x³.",
        "third": "Two passes were recorded, so there is a third derivative: 24 x.",
        "line": "g is the number 5 and depends on nothing: it has no graph.",
        "relu": "g has a graph, as the step of relu depends on x, and it is flat almost everywhere.",
        "product": "g depends on x as well: g x is 4 x⁴, and its derivative is 16 x³.",
        "product_unrecorded": "g is a number here, so the derivative of g x is g.",
        "square": "g depends on x: the derivative of g² is 2 g times 12 x².",
    },
)

EXERCISE = Exercise(
    id="predict_second_order",
    title="Number or error?",
    lesson=LESSON,
    difficulty=1,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=_TABLE.judge,
    debrief=_TABLE.debrief,
    hints=(
        "Work out the first derivative of each function on paper, then ask whether the code recorded the pass.",
        "A gradient that was not recorded is a number like any other. A gradient whose graph does not lead to x "
        "cannot be differentiated. And `.grad` adds.",
        "For each entry write down g as a formula in x. If the pass was recorded, differentiate what is built from "
        "that formula. If not, treat g as a constant: then see whether anything is left that depends on x.",
    ),
    misconceptions=(
        Misconception(
            "another word",
            'Where a statement raises, the text "error" is asked for. You gave something else there, and no number.',
            _no_error,
        ),
        Misconception(
            "retaining records",
            "You gave a number for `retained`. Retaining keeps what the forward pass saved. It does not record the "
            "backward pass, so look again at what x.grad is there.",
            _only("retained", 27.0, 40.5),
        ),
        Misconception(
            "nothing is added",
            "Your number for `two_backwards` is the second derivative. The entry asks for x.grad, and two passes "
            "wrote to it.",
            _only("two_backwards", 27.0),
        ),
        Misconception(
            "a constant has a graph",
            "You gave 0 for `line`, which is the derivative in mathematics. Ask what the graph of that first gradient "
            "looks like.",
            _only("line", 0.0),
        ),
        Misconception(
            "a recorded gradient is a constant",
            "For `product` you differentiated x and left g as it is. There g was recorded, and depends on x as well.",
            _only("product", 13.5),
        ),
    ),
)
