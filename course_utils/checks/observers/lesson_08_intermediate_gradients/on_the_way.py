"""Running a function that changes gradients on their way back."""

from __future__ import annotations

from collections.abc import Callable

import torch

from course_utils.checks.data import Array, Case, Observation, Value, plain
from course_utils.checks.scenes.numbers import by_columns


def on_the_way(answer: Callable[[torch.Tensor, float], torch.Tensor], case: Case, value: float) -> Observation:
    """Watch a function of a tensor and a value that only changes the gradient on its way back through it."""
    source = by_columns(case.given["x"].tensor()).requires_grad_(case.given["requires_grad"])
    x = source if case.given["leaf"] else source.sin()
    values, version = Array.of(x), x._version
    other = torch.ones(x.shape, dtype=x.dtype, requires_grad=True)
    neighbour = other * 1
    with torch.set_grad_enabled(not case.given["no_grad"]):
        y = answer(x, value)
        another = torch.ones(2, 3, requires_grad=True)
        later = answer(another, case.given["another"])  # not to change what the first call gave
        switched = torch.is_grad_enabled() == case.given["no_grad"]
    seen: Observation = {
        **{"returned": plain(y), "recorded": type(y) is torch.Tensor and y.requires_grad, "through": None},
        **{"beside": None, "both": None, "twice": None, "neighbour": None, "another": None},
    }
    if seen["recorded"] and y.shape == x.shape and y.dtype == x.dtype and x.requires_grad:
        down, beside = by_columns(case.given["down"].tensor()), case.given["beside"].tensor()
        seen["through"] = [_arriving((y * by).sum(), source) for by in (down, 0 * down, 1e-7 * down)]
        seen["beside"] = _arriving((x.cos() * beside).sum(), source)
        seen["both"] = _arriving((y * down).sum() + (x.cos() * beside).sum(), source)
        seen["twice"] = _arriving((y * down).sum() + (y * beside).sum(), source)
        # The node of a sum hands one tensor to both sides; the neighbour's side is the later one to use it.
        added = ((y + neighbour) * down).sum()
        seen["neighbour"] = plain(torch.autograd.grad(added, (other, source), retain_graph=True, allow_unused=True)[0])
        if type(later) is torch.Tensor and later.requires_grad:
            seen["another"] = _arriving((later * torch.ones(2, 3)).sum(), another)
    after = {"changed": Array.of(x) != values or x._version != version, "held": plain(source.grad)}
    return {
        **seen,
        **after,
        "required": source.requires_grad and x.requires_grad,
        "retains": x.retains_grad,
        "switched": switched,
    }


def _arriving(loss: torch.Tensor, source: torch.Tensor) -> Value:
    return plain(torch.autograd.grad(loss, source, retain_graph=True, allow_unused=True)[0])
