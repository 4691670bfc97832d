"""Running an answer to `log_cosh`."""

from __future__ import annotations

from typing import Any

import torch

from course_utils.checks.data import Answer, Case, Observation, Value, plain
from course_utils.checks.observers.lesson_10_custom_functions.nodes import attached, on_ctx, operations
from course_utils.checks.observers.lesson_10_custom_functions.surroundings import INCOMING, Surroundings, unrecorded
from course_utils.checks.scenes.numbers import by_columns


def observe(answer: Answer, case: Case) -> Observation:
    x, direction = case.given["x"].tensor(), case.given["direction"].tensor()
    if case.given["transposed"]:
        x = by_columns(x)
    x.requires_grad_()
    around = Surroundings({"x": x, INCOMING: direction})
    unrecorded_changes = unrecorded(answer, direction)
    y = answer(x)
    with torch.enable_grad():
        behind = answer(x)
        answer((direction + 1).requires_grad_())  # another call before the pass: each has its own numbers
    seen: Observation = {"returned": plain(y), "attached": attached(y, x)}
    if seen["attached"]:
        seen["operations"] = operations(y, x)
        torch.autograd.grad(y, x, direction, retain_graph=True, allow_unused=True)
        seen["attribute"] = on_ctx(y)
        derivatives: list[Any] = []
        while attached(y, x) and len(derivatives) < 3:
            (y,) = torch.autograd.grad(y, x, direction, create_graph=True, allow_unused=True)
            derivatives.append(plain(y))
        seen["derivatives"] = derivatives
        seen["times x"] = _second_times_x(behind, x, direction)
        seen["changed"] = around.changed() + unrecorded_changes
    return seen


def _second_times_x(y: torch.Tensor, x: torch.Tensor, direction: torch.Tensor) -> Value:
    """Return the second derivative of y times x: then a gradient comes in that depends on x."""
    with torch.enable_grad():  # an answer may have left it off
        product = y * x
    (first,) = torch.autograd.grad(product, x, direction, create_graph=True, allow_unused=True)
    if not attached(first, x):
        return None
    return plain(torch.autograd.grad(first, x, direction, allow_unused=True)[0])
