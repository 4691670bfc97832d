"""Judging `which_backward`: which test is the first to find the fault?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import Function, gradcheck, gradgradcheck

from course_utils.checks.exercise import Exercise, Misconception
from course_utils.checks.judges.lesson_10_custom_functions import LESSON
from course_utils.checks.judges.predictions import one_case
from course_utils.checks.judges.programs import Choices

# The body of forward and that of backward, as the task shows them.
FUNCTIONS = {
    "cube": ("ctx.save_for_backward(x); return x**3", "x, = ctx.saved_tensors; return 3 * g * x**2"),
    "square": ("ctx.save_for_backward(x); return x**2", "x, = ctx.saved_tensors; return 2 * x"),
    "sine": ("ctx.save_for_backward(x); return x.sin()", "x, = ctx.saved_tensors; return g * x.detach().cos()"),
    "size": ("return x.abs()", "return g"),
    "ramp": ("ctx.save_for_backward(x); return x.clamp(min=0)", "x, = ctx.saved_tensors; return g * (x > 0)"),
    "soft": (
        "ctx.save_for_backward(x); return torch.nn.functional.softplus(x)",
        "x, = ctx.saved_tensors; return g * x.exp() / (1 + x.exp())",
    ),
    "shared": ("F.x = x; return x**2", "return 2 * g * F.x"),
    "root": ("y = x.abs().sqrt(); ctx.save_for_backward(x, y); return y", "x, y = ctx.saved_tensors; return g / y"),
}

_Apply = Callable[[torch.Tensor], torch.Tensor]


def _made(name: str) -> _Apply:
    """Return `apply` of a Function made from the text of its forward and its backward."""
    forward, backward = (text.replace("; ", "\n        ") for text in FUNCTIONS[name])
    source = (
        "class F(Function):\n"
        f"    @staticmethod\n    def forward(ctx, x):\n        {forward}\n"
        f"    @staticmethod\n    def backward(ctx, g):\n        {backward}\n"
    )
    names: dict[str, Any] = {"Function": Function, "torch": torch}
    exec(source, names)
    apply: _Apply = names["F"].apply
    return apply


def _leaf(*numbers: float, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.tensor(numbers, dtype=dtype, requires_grad=True)


def _finite(f: _Apply) -> bool:
    x = _leaf(-100.0, 100.0, dtype=torch.float32)
    (gradient,) = torch.autograd.grad(f(x).sum(), x)
    return bool(gradient.isfinite().all())


def _calls_apart(f: _Apply) -> bool:
    a, b = _leaf(0.5, 1.5), _leaf(2.0, 3.0)
    together = torch.autograd.grad(f(a).sum() + f(b).sum(), (a, b))
    alone = [torch.autograd.grad(f(x).sum(), x)[0] for x in (a, b)]
    return all(map(torch.allclose, together, alone))


_TESTS: dict[str, Callable[[_Apply], bool]] = {
    "A": lambda f: gradcheck(f, _leaf(0.5, 1.5, 2.5), raise_exception=False),
    "B": lambda f: gradgradcheck(f, _leaf(0.5, 1.5, 2.5), raise_exception=False),
    "C": lambda f: gradcheck(f, _leaf(-0.5, -1.5, -2.5), raise_exception=False),
    "D": _finite,
    "E": _calls_apart,
}


def _first_to_fail(name: str) -> str:
    f = _made(name)
    return next((letter for letter, passes in _TESTS.items() if not passes(f)), "F")


_TABLE = Choices(
    lambda: {name: _first_to_fail(name) for name in FUNCTIONS},
    {
        "cube": "The derivative times what came in, from a saved input, by operations that are recorded in turn.",
        "square": "g is left out. gradcheck sends in a 1 for one number of the result and 0 for the others, and finds "
        "gradients where there should be none.",
        "sine": "The first derivative is right. The detach makes it a constant, so the second is missing.",
        "size": "For positive numbers g is right. Only negative ones show that the sign is missing.",
        "ramp": "The comparison has no graph, and needs none: the slope is 0 or 1 and does not change with x.",
        "soft": "The formula is right and e to the power of 100 is too large for single precision: inf / inf is nan.",
        "shared": "The second call overwrites what the first one noted on the class. One call at a time is right.",
        "root": "A factor 1/2 is missing, which is wrong at every number.",
    },
)

EXERCISE = Exercise(
    id="which_backward",
    title="Which test finds it out?",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=_TABLE.judge,
    debrief=_TABLE.debrief,
    hints=(
        "First see whether the formula is right for positive numbers, and whether g is in it. If not, the first test "
        "finds it out.",
        "Then go on through the tests: is backward made of recorded operations of saved tensors, does the formula hold "
        "for negative numbers, does a number on the way grow beyond single precision (about 3e38), and where is noted "
        "what backward needs?",
        "Two Functions are right. Two fall at the first test: one lacks g, one a factor. The other four each fail "
        "another test: look for a detach, for a derivative that forgets a sign, for a power of e, and for what stands "
        "on the class.",
    ),
    misconceptions=(
        Misconception(
            "gradcheck finds everything",
            "You took gradcheck to find what it does not look at. It compares first derivatives, at the numbers that "
            "it is given, in double precision, one call at a time.",
            _TABLE.any_but(
                {"sine": "A"},
                {"size": "A"},
                {"soft": "A"},
                {"shared": "A"},
                {"sine": "A", "size": "A", "soft": "A", "shared": "A"},
            ),
        ),
        Misconception(
            "a mask cuts",
            "You took the comparison in `ramp` for a cut. g goes through the product as always, and the slope does not "
            "depend on x.",
            _TABLE.any_but({"ramp": "A"}, {"ramp": "B"}),
        ),
        Misconception(
            "g is 1",
            "You took it that g may be left out. It is 1 where the result is the loss, or is added into it, and "
            "elsewhere it is not.",
            _TABLE.any_but({"square": "F"}, {"square": "B"}),
        ),
        Misconception(
            "the class is ctx",
            "You took an attribute of the class for one of ctx. Each call has its own ctx, and all share the class.",
            _TABLE.but(shared="F"),
        ),
    ),
)
