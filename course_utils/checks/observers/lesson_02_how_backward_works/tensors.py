"""Inputs as a case lays them out in memory, and what became of them."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.checks.observers.passes import every_pass, tangents
from course_utils.checks.scenes.numbers import by_columns


def on_tensors(answer: Answer, case: Case, *names: str, last: tuple[int, ...] = ()) -> Observation:
    """Call an answer with the tensors of a case, and what comes after them."""
    tensors = {name: laid_out(case, name) for name in names}
    with every_pass() as passes, tangents() as forward:
        returned = plain(answer(*tensors.values(), *last))
    return {"returned": returned, "passes": len(passes), "tangents": len(forward), **left(tensors, case)}


def laid_out(case: Case, name: str) -> torch.Tensor:
    """Return a tensor of the case, as a view that is not contiguous where the case asks for one.

    Of one that the case calls expanded, a row's equal numbers are one number in memory.
    Those that the case calls leaves require grad, and hold a gradient from before; those it calls new hold none.
    """
    tensor: torch.Tensor = case.given[name].tensor()
    if case.given.get("transposed"):
        tensor = by_columns(tensor)
    elif name in case.given.get("expanded", ()):
        tensor = tensor[..., :1].expand_as(tensor)
    elif case.given.get("strided"):
        spaced = torch.full((*tensor.shape, 2), 99.0, dtype=tensor.dtype)
        spaced[..., 0] = tensor
        tensor = spaced[..., 0]
    if name in case.given.get("leaves", ()):
        tensor.requires_grad_()
        tensor.grad = torch.full_like(tensor, 7.0)
    return tensor.requires_grad_() if name in case.given.get("new", ()) else tensor


def left(tensors: dict[str, torch.Tensor], case: Case) -> Observation:
    """Name the tensors that no longer have the shape, numbers, gradient or flag that they were given with."""
    leaves = case.given.get("leaves", ())
    requiring = [*leaves, *case.given.get("new", ())]
    given = {name: case.given[name].tensor() for name in tensors}
    held = {name: Array.of(torch.full_like(it, 7.0)) if name in leaves else None for name, it in given.items()}
    other = [name for name, it in tensors.items() if (it.shape, it.dtype) != (given[name].shape, given[name].dtype)]
    return {
        "other": other,
        "changed": [name for name, it in tensors.items() if name not in other and plain(it) != case.given[name]],
        "graded": [name for name, tensor in tensors.items() if tensor.is_leaf and plain(tensor.grad) != held[name]],
        "switched on": [name for name, it in tensors.items() if it.requires_grad and name not in requiring],
        "switched off": [name for name, it in tensors.items() if not it.requires_grad and name in requiring],
    }
