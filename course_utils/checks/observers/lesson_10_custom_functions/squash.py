"""Running an answer to `squash`."""

from __future__ import annotations

from typing import Any

import torch

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.lesson_10_custom_functions.nodes import attached, on_ctx, operations
from course_utils.checks.observers.lesson_10_custom_functions.surroundings import INCOMING, Surroundings, unrecorded
from course_utils.checks.observers.made import Made
from course_utils.graph.alive import Memory


def observe(answer: Answer, case: Case) -> Observation:
    base, direction, memory = case.given["x"].tensor().requires_grad_(), case.given["direction"].tensor(), Memory()
    x = base + 0
    if case.given["transposed"]:
        x = x.t()
    around = Surroundings({"x": x, INCOMING: direction})
    unrecorded_changes = unrecorded(answer, direction)  # plain data: it stays plain
    memory.add(x)
    with Made() as made:
        y = answer(x)
    seen: Observation = {"returned": plain(y), "attached": attached(y, x)}
    if seen["attached"]:
        seen["operations"] = operations(y, x)
        between = answer(x)
        answer(2 * direction)  # other numbers, before the pass: what is remembered of the last call is theirs
        gradient, second, through = _two_derivatives(between, x, direction)
        seen |= {"gradient": gradient, "second": second, "through": through}
        torch.autograd.grad(answer(x), x, direction, allow_unused=True)
        seen["changed"] = around.changed() + unrecorded_changes
        del x, around, between
        own = y.untyped_storage().nbytes() if seen["operations"] else 0
        seen["kept"] = max(0, made.alive() - own) + memory.alive()
        torch.autograd.grad(y, base, direction, allow_unused=True)
        seen["attribute"] = on_ctx(y)
    return seen


def _two_derivatives(y: Any, x: torch.Tensor, direction: torch.Tensor) -> list[Any]:
    """Return the gradient of y, and those of the gradient for x and for what comes in, as plain data."""
    if not attached(y, x):
        return [None, None, None]
    come_in = direction.clone().requires_grad_()  # as where y goes into more that bends
    (first,) = torch.autograd.grad(y, x, come_in, create_graph=True, allow_unused=True)
    if not attached(first, x):
        return [plain(first), None, None]
    both = torch.autograd.grad(first, (x, come_in), direction, allow_unused=True)
    return [plain(first), *map(plain, both)]
