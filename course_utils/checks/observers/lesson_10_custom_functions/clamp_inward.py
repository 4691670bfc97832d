"""Running an answer to `clamp_inward`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.lesson_10_custom_functions.nodes import attached, on_ctx, operations
from course_utils.checks.observers.lesson_10_custom_functions.surroundings import INCOMING, Surroundings, unrecorded


def observe(answer: Answer, case: Case) -> Observation:
    x, direction = case.given["x"].tensor(), case.given["direction"].tensor()
    if case.given["transposed"]:  # the same numbers, in another order in memory
        x, direction = (it.transpose(0, -1).contiguous().transpose(0, -1) for it in (x, direction))
    x.requires_grad_()
    around, low, high = Surroundings({"x": x, INCOMING: direction}), case.given["low"], case.given["high"]
    y = answer(x, low, high)
    seen: Observation = {"returned": plain(y), "attached": attached(y, x)}
    unrecorded_changes = unrecorded(answer, direction, low + 0.3, high + 0.3)  # must not disturb the first
    if seen["attached"]:
        seen["operations"] = operations(y, x)
        (gradient,) = torch.autograd.grad(y, x, direction, allow_unused=True)
        seen["gradient"] = plain(gradient)
        seen["attribute"] = on_ctx(y)
        seen["changed"] = around.changed() + unrecorded_changes
    return seen
