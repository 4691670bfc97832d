"""Running an answer to `swish`."""

from __future__ import annotations

from typing import Any

import torch

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.lesson_10_custom_functions.nodes import attached, on_ctx, operations
from course_utils.checks.observers.lesson_10_custom_functions.surroundings import INCOMING, Surroundings, unrecorded
from course_utils.checks.observers.made import Made
from course_utils.checks.scenes.numbers import by_columns
from course_utils.graph.alive import Memory


def after_a_write(written: torch.Tensor, result: Any, wanted: list[torch.Tensor], direction: torch.Tensor) -> Any:
    """Write to an input of a result that is there already. Return its gradients all the same, or "raised"."""
    if not attached(result, direction):
        return []
    written.detach().add_(1)
    try:
        return [plain(each) for each in torch.autograd.grad(result, wanted, direction, allow_unused=True)]
    except RuntimeError:
        return "raised"


def after_a_pass(
    answer: Answer, base: torch.Tensor, beta: torch.Tensor, wanted: list[torch.Tensor], direction: torch.Tensor
) -> int:
    """Return how many bytes made in a call and a pass through it are held when nobody has its result any more."""
    with Made() as made:
        torch.autograd.grad(answer(base + 0, beta + 0), wanted, direction, allow_unused=True)
    return int(made.alive())


def observe(answer: Answer, case: Case) -> Observation:
    base, beta = case.given["x"].tensor().requires_grad_(), case.given["beta"].tensor()
    beta.requires_grad_(case.given["learned"])
    base.requires_grad_(not case.given["data"])
    direction, memory = case.given["direction"].tensor(), Memory()
    x = by_columns(base)
    around = Surroundings({"x": x, "beta": beta, INCOMING: direction})
    memory.add(x)
    y = answer(x, beta)
    seen: Observation = {"returned": plain(y), "attached": attached(y, x)}
    if seen["attached"]:
        seen["operations"] = operations(y, x, beta)
        # a call of its own, with a beta of another shape, that must not disturb the pass
        other = beta.detach().mean() + 1 if beta.dim() else beta.detach() + torch.ones_like(direction)
        unrecorded_changes = unrecorded(answer, direction, other)
        wanted = [it for it in (base, beta) if it.requires_grad]
        gradients = torch.autograd.grad(y, wanted, direction, allow_unused=True)
        seen["gradients"] = [plain(gradient) for gradient in gradients]
        seen["attribute"] = on_ctx(y)
        seen["changed"] = around.changed() + unrecorded_changes
        del x, around
        seen["kept"] = memory.alive()
        seen["kept"] += after_a_pass(answer, base, beta, wanted, direction)
        seen["written"] = []
        for n in (0, 1):
            given = (base + 0, beta + 0)
            seen["written"].append(after_a_write(given[n], answer(*given), wanted, direction))
        if not beta.dim():
            single = beta.detach().reshape(1).requires_grad_()
            x, direction = (case.given[name].tensor() for name in ("x", "direction"))  # whoever wrote into the others
            seen["single"] = plain(torch.autograd.grad(answer(x, single), single, direction, allow_unused=True)[0])
    return seen
