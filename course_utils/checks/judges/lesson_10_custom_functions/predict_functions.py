"""Judging `predict_functions`: what do these Functions give?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_10_custom_functions import LESSON
from course_utils.checks.judges.predictions import Table, one_case

_Body = Callable[..., Any]


def _save(ctx: Any, x: torch.Tensor) -> torch.Tensor:
    ctx.save_for_backward(x)
    return x * x


def _hang(ctx: Any, x: torch.Tensor) -> torch.Tensor:
    ctx.x = x
    return x * x


def _save_in_list(ctx: Any, x: torch.Tensor) -> list[torch.Tensor]:
    return [_save(ctx, x)]


def _times(ctx: Any, x: torch.Tensor, k: float) -> torch.Tensor:
    return k * x


def _outer(ctx: Any, x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    ctx.save_for_backward(rows)
    return x * rows


def _saved(ctx: Any) -> torch.Tensor:
    tensor: torch.Tensor = ctx.saved_tensors[0]
    return tensor


def _returns_nothing(ctx: Any, g: torch.Tensor) -> None:
    _ = 2 * g * _saved(ctx)


# Forward and backward. An entry whose name ends in "written" has its input written to before the pass.
_ENTRIES: dict[str, tuple[_Body, _Body]] = {
    "as_it_should": (_save, lambda ctx, g: 2 * g * _saved(ctx)),
    "no_return": (_save, _returns_nothing),
    "g_left_out": (_save, lambda ctx, g: 2 * _saved(ctx)),
    "in_a_list": (_save_in_list, lambda ctx, g: 2 * g * _saved(ctx)),
    "one_too_few": (_times, lambda ctx, g: 2 * g),
    "not_summed": (_outer, lambda ctx, g: (g * _saved(ctx), None)),
    "saved_then_written": (_save, lambda ctx, g: 2 * g * _saved(ctx)),
    "on_ctx_then_written": (_hang, lambda ctx, g: 2 * g * ctx.x),
}


def _outcome(name: str) -> str:
    forward, backward = _ENTRIES[name]
    body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    made: Any = type(name, (torch.autograd.Function,), body)
    x = torch.tensor([1.5, -2.5, 3.5], requires_grad=True)
    rows = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    h = x + 0
    match name:
        case "one_too_few":
            y, right = made.apply(h, 2.0), torch.full((3,), 6.0)
        case "not_summed":
            y, right = made.apply(h, rows), 3 * rows.sum(0)
        case "in_a_list":
            (y,), right = made.apply(h), 6 * x.detach()
        case _:
            y, right = made.apply(h), 6 * x.detach()
    if name.endswith("written"):
        h.detach().mul_(10)
    try:
        (3 * y).sum().backward()
    except RuntimeError:
        return "raises"
    if x.grad is None or not x.grad.any():
        return "nothing"
    return "right" if torch.allclose(x.grad, right) else "wrong"


_REASONS = {
    "as_it_should": "The saved x times 2 times what came in, which is 3 everywhere.",
    "no_return": "Python returns None from a function without return, and None is a gradient that does not arrive.",
    "g_left_out": "The derivative is there, and the 3 that came in is not.",
    "in_a_list": "apply looks at tensors and tuples of them. What stands in a list gets no graph.",
    "one_too_few": "forward got two inputs and backward returns one gradient. The number k needs its None.",
    "not_summed": "A gradient of shape (2, 3) for an input of shape (3,) is summed, as for a broadcast input.",
    "saved_then_written": "save_for_backward noted the version of h, and backward finds another.",
    "on_ctx_then_written": "An attribute of ctx is plain Python: backward reads the new numbers of h, unnoticed.",
}

_TABLE = Table(lambda: {name: _outcome(name) for name in _ENTRIES}, reasons=_REASONS)


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    received = seen["value"]
    if isinstance(received, dict):
        words = ("right", "wrong", "nothing", "raises")
        odd = [name for name in received if name in _ENTRIES and isinstance(received[name], str)]
        odd = [name for name in odd if received[name] not in words]
        message = f"Each entry is one of the texts {', '.join(words)}. Yours for {', '.join(odd)}: something else."
        yield Finding("words", not odd, message)
        if odd:
            return
    yield from _TABLE.judge(case, seen)


EXERCISE = Exercise(
    id="predict_functions",
    title="What do these Functions give?",
    lesson=LESSON,
    difficulty=2,
    minutes=12,
    points=2,
    call=None,
    cases=one_case,
    judge=_judge,
    debrief=_TABLE.debrief,
    hints=(
        "Ask two things of each entry: does PyTorch see that something is wrong, and if not, what arrives at x?",
        "PyTorch compares the number of gradients with the number of inputs, and their shapes with the shapes of the "
        "inputs. It does not compare their numbers with anything.",
        "A shape that the input could be broadcast to is summed; another raises. None means no gradient. A list hides "
        "its tensors from apply. Only save_for_backward notes the version of a tensor.",
    ),
    misconceptions=(
        Misconception(
            "None is an error",
            "You said that a backward without `return` raises. Python then returns None, and for PyTorch None is a "
            "valid gradient.",
            _TABLE.but(no_return="raises"),
        ),
        Misconception(
            "shapes must be equal",
            "You said that a gradient larger than its input raises. PyTorch treats it like the gradient of a "
            "broadcast input.",
            _TABLE.but(not_summed="raises"),
        ),
        Misconception(
            "ctx checks versions",
            "You said that a write to a tensor kept as an attribute of ctx is noticed. An attribute is plain Python: "
            "nobody compares versions.",
            _TABLE.but(on_ctx_then_written="raises"),
        ),
    ),
)
