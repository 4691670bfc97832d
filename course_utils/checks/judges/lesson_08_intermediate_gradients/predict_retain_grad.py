"""Judging `predict_retain_grad`: what is in h.grad?"""

from __future__ import annotations

import warnings
from typing import Any

import torch

from course_utils.checks.exercise import Exercise, Misconception
from course_utils.checks.judges.lesson_08_intermediate_gradients import LESSON
from course_utils.checks.judges.predictions import Table, one_case

_RETAIN: dict[str, str] = {
    "never": "y = 4 * h; y.backward()",
    "before_use": "h.retain_grad(); y = 4 * h; y.backward()",
    "after_use": "y = 4 * h; h.retain_grad(); y.backward()",
    "too_late": "y = 4 * h; y.backward(); h.retain_grad()",
    "two_uses": "h.retain_grad(); y = 4 * h + 5 * h; y.backward()",
    "same_graph_twice": "h.retain_grad(); y = 4 * h; y.backward(retain_graph=True); y.backward()",
    "second_loss": "h.retain_grad(); (4 * h).backward(); (5 * h).backward()",
    "rebound": "h.retain_grad(); h = 4 * h; h.backward()",
    "in_place": "h.retain_grad(); h.mul_(4); y = 5 * h; y.backward()",
    "detached": "h = h.detach(); h.retain_grad(); y = 4 * h + x; y.backward()",
    "by_function": "h.retain_grad(); y = 4 * h; torch.autograd.grad(y, x)",
    "with_hook": "h.retain_grad(); h.register_hook(lambda g: 10 * g); y = 4 * h; y.backward()",
}


def _held(code: str) -> float | str | None:
    x = torch.tensor(3.0, requires_grad=True)
    names: dict[str, Any] = {"torch": torch, "x": x, "h": x * x}
    try:
        exec(code, names)  # the texts above, never a learner's
    except RuntimeError:
        return "error"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gradient = names["h"].grad
    return None if gradient is None else float(gradient)


_TABLE = Table(
    lambda: {name: _held(code) for name, code in _RETAIN.items()},
    reasons={
        "never": "Only leaves keep gradients unasked.",
        "before_use": "The mark was there when the pass came by.",
        "after_use": "The mark was there when the pass came by. When h was used does not matter.",
        "too_late": "The pass had gone by already.",
        "two_uses": "The gradients of both uses add up before they are kept.",
        "same_graph_twice": "What is kept adds up over passes, as in a leaf.",
        "second_loss": "x * x saved x, and the first pass freed it.",
        "rebound": "The name h means another tensor now, which has no mark.",
        "in_place": "The mark follows to the newest version, whose gradient is 5.",
        "detached": "A tensor that requires no gradient cannot keep one.",
        "by_function": "The pass goes through h, whoever asked for it.",
        "with_hook": "Hooks run before the gradient is kept.",
    },
)

EXERCISE = Exercise(
    id="predict_retain_grad",
    title="What is in h.grad?",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=_TABLE.judge,
    hints=(
        "Ask of each entry: is the mark there when the pass comes by, and which tensor bears it?",
        "A name and a tensor are two things: after `h = ...` the name means another tensor. A write in place keeps "
        "the tensor. And a product of x with itself saves x.",
        "Gradients add up where uses join, and .grad adds up over passes. Keeping what a gradient was does not keep "
        "what the graph saved. Hooks run before the gradient is kept. A tensor without a graph can keep nothing.",
    ),
    debrief=_TABLE.debrief,
    misconceptions=(
        Misconception(
            "before the first use",
            "You said that retain_grad() has to stand before the tensor is used. Using a tensor in the forward pass "
            "computes no gradient yet.",
            lambda case, seen: any(_TABLE.but(after_use=wrong)(case, seen) for wrong in (None, "error")),
        ),
        Misconception(
            "retain_grad is retain_graph",
            "You let a second pass go through what the first one freed. retain_grad() keeps a gradient. Whether "
            "the graph's saved tensors stay is another question.",
            lambda case, seen: any(_TABLE.but(second_loss=wrong)(case, seen) for wrong in (9, 9.0, 5, 5.0)),
        ),
        Misconception(
            "reading raises",
            "You said that reading .grad of a tensor that kept none is an error.",
            _TABLE.but(never="error", too_late="error", rebound="error"),
        ),
        Misconception(
            "the last pass wins",
            "You let the second pass overwrite the gradient of the first.",
            lambda case, seen: any(_TABLE.but(same_graph_twice=wrong)(case, seen) for wrong in (4, 4.0)),
        ),
        Misconception(
            "backward only",
            "You said that torch.autograd.grad leaves h.grad empty. The pass goes through h, whoever asked for it.",
            _TABLE.but(by_function=None),
        ),
    ),
)
