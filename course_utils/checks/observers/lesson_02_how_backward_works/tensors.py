"""Inputs as a case lays them out in memory, and what became of them."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Array, Case, Observation, plain


def on_tensors(answer: Answer, case: Case, *names: str) -> Observation:
    tensors = {name: laid_out(case.given[name], case) for name in names}
    returned = plain(answer(*tensors.values()))
    return {"returned": returned, **left(tensors, case)}


def laid_out(array: Array, case: Case) -> torch.Tensor:
    """Return the tensor, as a view that is not contiguous where the case asks for one."""
    tensor = array.tensor()
    if case.given.get("transposed"):
        return tensor.mT.contiguous().mT
    if not case.given.get("strided"):
        return tensor
    spaced = torch.full((*tensor.shape, 2), 99.0, dtype=tensor.dtype)
    spaced[..., 0] = tensor
    return spaced[..., 0]


def left(tensors: dict[str, torch.Tensor], case: Case) -> Observation:
    """Name the tensors that no longer hold the numbers they were given with, and those that require grad."""
    return {
        "changed": [name for name, tensor in tensors.items() if plain(tensor) != case.given[name]],
        "requiring": [name for name, tensor in tensors.items() if tensor.requires_grad],
    }
