"""Judging `predict_switches`: does the result require a gradient?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from course_utils.checks.exercise import Exercise, Misconception
from course_utils.checks.judges.lesson_06_detach_vs_no_grad import LESSON
from course_utils.checks.judges.predictions import Table, one_case


def _x() -> torch.Tensor:
    return torch.rand(4, 3, requires_grad=True)


def _times_weight() -> torch.Tensor:
    return _x().detach() * torch.rand(3, requires_grad=True)


def _after_the_block() -> torch.Tensor:
    weight = torch.rand(3, requires_grad=True)
    with torch.no_grad():
        h = _x().exp()
    return h * weight


def _made_inside() -> torch.Tensor:
    with torch.no_grad():
        return torch.zeros(3, requires_grad=True)


def _written_inside() -> torch.Tensor:
    y = _x() * 2
    with torch.no_grad():
        y.mul_(3)
    return y


def _enabled(block: Callable[[], Any]) -> torch.Tensor:
    x = _x()
    with block(), torch.enable_grad():
        return x.exp()


def _frozen(data: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = nn.Linear(3, 2).requires_grad_(False)(data)
    return result


def _evaluating() -> torch.Tensor:
    result: torch.Tensor = nn.Linear(3, 2).eval()(torch.rand(4, 3))
    return result


_SWITCHES: dict[str, Callable[[], torch.Tensor]] = {
    "detached_factor": _times_weight,
    "after_the_block": _after_the_block,
    "made_inside": _made_inside,
    "written_inside": _written_inside,
    "enabled_in_no_grad": lambda: _enabled(torch.no_grad),
    "enabled_in_inference": lambda: _enabled(torch.inference_mode),
    "frozen_live_input": lambda: _frozen(_x()),
    "frozen_data": lambda: _frozen(torch.rand(4, 3)),
    "evaluating": _evaluating,
    "clone_then_detach": lambda: _x().clone().detach(),
    "rounded": lambda: _x().round(),
    "best": lambda: _x().argmax(),
}

_TABLE = Table(
    lambda: {name: make().requires_grad for name, make in _SWITCHES.items()},
    {
        "detached_factor": "x.detach() is data, and w is live: one live input is enough.",
        "after_the_block": "h is data, and w joins it outside the block, where recording is on.",
        "made_inside": "It is a new leaf. no_grad stops operations from being recorded, and no operation made it.",
        "written_inside": "y was recorded before the block. What the block wrote changed its numbers, not its graph.",
        "enabled_in_no_grad": "The inner switch holds: recording is on again.",
        "enabled_in_inference": "Inference mode is stricter: enable_grad does not undo it.",
        "frozen_live_input": "The way to x is open, whatever the layer's own parameters want.",
        "frozen_data": "No input of the operation requires a gradient.",
        "evaluating": "eval() changes what dropout and batch norm compute. The weights are live.",
        "clone_then_detach": "clone is recorded, and then detach cuts.",
        "rounded": "Rounding is recorded like any operation. Its gradient is zero.",
        "best": "It is a whole number, and whole numbers have no gradient.",
    },
)

EXERCISE = Exercise(
    id="predict_switches",
    title="Does the result require a gradient?",
    lesson=LESSON,
    difficulty=1,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=_TABLE.judge,
    debrief=_TABLE.debrief,
    hints=(
        "For each entry ask three things: does an input require a gradient, was recording on when the line ran, and "
        "can the operation be differentiated at all?",
        "A switch acts on the operations that run while it is set. It says nothing about what is done with their "
        "results later. detach acts on one tensor.",
        "A result requires a gradient if recording is on and any input requires one: a weight counts as an input. A "
        "tensor that you create with requires_grad=True is a leaf, and no recorded operation made it. Inference mode "
        "is stronger than no_grad. Integers have no gradient.",
    ),
    misconceptions=(
        Misconception(
            "a cut that spreads",
            "You let a cut spread to operations that come after it. A detached tensor, and a result of no_grad, is "
            "data. What later joins it with a weight is recorded as usual.",
            _TABLE.but(detached_factor=False, after_the_block=False),
        ),
        Misconception(
            "eval switches gradients off",
            "You took eval() to stop recording. It sets `training`, by which dropout, batch norm and some other "
            "modules compute something else. Recording goes on.",
            _TABLE.but(evaluating=False),
        ),
        Misconception(
            "frozen cuts",
            "You took a frozen layer to cut the way to its input. Its own parameters want no gradient; its input may.",
            _TABLE.but(frozen_live_input=False),
        ),
        Misconception(
            "inference mode is another no_grad",
            "You took inference_mode for another name of no_grad. Try enable_grad inside each.",
            _TABLE.but(enabled_in_inference=True),
        ),
    ),
)
