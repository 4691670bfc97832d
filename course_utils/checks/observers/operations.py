"""What an operation does with numbers: move them, change each by itself, or multiply many of one tensor by another's.

A rule and no list of products: PyTorch has dozens of operations that hold one, and gets more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from course_utils.checks.observers.storages import storage_of
from course_utils.graph.alive import tensors_in

# What puts numbers elsewhere and computes none, or writes into memory of its own: optimizers' updates among it.
_MOVES = ("cat", "stack", "index", "gather", "scatter", "select", "slice", "take", "copy", "as_strided", "set", "sort")
_UPDATES = ("_fused_", "_amp_")


def is_product(function: Any, given: Sequence[torch.Tensor], made: Sequence[torch.Tensor], whole: bool = False) -> bool:
    """Say whether an operation computes something from pairs of numbers, one of each of two tensors.

    What it is called does not matter. An operation that takes numbers pair by pair, and makes no more than it is
    given, is an update or a mask; one that makes more repeats the numbers of one tensor for those of another. Whole
    numbers are places and classes, but where they are said to be numbers like others.
    """
    many = [it for it in given if it.numel() > 1 and (whole or it.dtype.is_floating_point or it.dtype.is_complex)]
    if len(many) < 2 or not made:
        return False
    name = function.overloadpacket.__name__
    if is_elementwise(function):
        return max(tensor.numel() for tensor in made) > max(map(distinct, many))
    moves = any(part in name for part in _MOVES) and "reduce" not in name  # `index_reduce` multiplies
    return not name.startswith(_UPDATES) and not moves


def is_elementwise(function: Any) -> bool:
    """Say whether an operation makes each number of those at its place, as sums and updates do."""
    return torch.Tag.pointwise in function.tags or function.overloadpacket.__name__.startswith("_foreach_")


def distinct(tensor: torch.Tensor) -> int:
    """Return how many numbers a tensor has in memory: of what `expand` repeats, each once."""
    storage = storage_of(tensor)
    return tensor.numel() if storage is None else min(tensor.numel(), storage.nbytes() // tensor.element_size())


def written(function: Any, args: Sequence[Any], named: Mapping[str, Any]) -> list[torch.Tensor]:
    """Return the tensors that an operation writes to, as its schema says: some of them return nothing."""
    given = dict(zip((it.name for it in function._schema.arguments), args, strict=False)) | dict(named)
    targets = [it.name for it in function._schema.arguments if it.alias_info is not None and it.alias_info.is_write]
    return list(tensors_in([given.get(name) for name in targets]))
