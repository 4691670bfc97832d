"""What an operation does with numbers: move them, change each by itself, or multiply many of one tensor by another's.

A rule and no list of products: PyTorch has dozens of operations that hold one, and gets more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

# What puts numbers elsewhere and computes none, or writes into memory of its own: optimizers' updates among it.
_MOVES = ("cat", "stack", "index", "gather", "scatter", "select", "slice", "take", "copy", "as_strided", "set", "sort")
_UPDATES = ("_foreach_", "_fused_", "_amp_")


def is_product(function: Any, given: Sequence[torch.Tensor], made: Sequence[torch.Tensor]) -> bool:
    """Say whether an operation computes something from pairs of numbers, one of each of two tensors.

    What it is called does not matter. An operation that takes numbers pair by pair, and makes no more than it is
    given, is an update or a mask; one that makes more repeats the numbers of one tensor for those of another.
    """
    many = [tensor for tensor in given if tensor.numel() > 1 and tensor.dtype.is_floating_point]
    if len(many) < 2 or not made:
        return False
    if torch.Tag.pointwise in function.tags:
        return max(tensor.numel() for tensor in made) > max(tensor.numel() for tensor in many)
    name = function.overloadpacket.__name__
    return not name.startswith(_UPDATES) and not any(part in name for part in _MOVES)
