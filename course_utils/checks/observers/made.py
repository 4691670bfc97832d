"""What is made while an answer runs: as tensors, which can be weighed, or as numbers of Python's own, which cannot."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from course_utils.checks.observers import telling
from course_utils.checks.observers.by_hand import READ, by_an_answer
from course_utils.checks.observers.operations import written
from course_utils.checks.observers.storages import Storages
from course_utils.graph.alive import PeakMemory

EARLIER = "memory from before"

FEW = 64  # numbers that an answer may take out of PyTorch one by one: settings, sums, sizes


class Made(PeakMemory):
    """The memory of tensors made in the body.

    In the second way of observing it tells of an answer that reads many numbers, or writes many into memory that was
    there before the body began. What is `known`, as parameters and their statistics, may be written to.
    """

    def __init__(self, known: Iterable[torch.Tensor] = ()) -> None:
        super().__init__()
        self._read = 0
        self._known = Storages()
        self._known.add_all(known)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_dispatch__(function, types, args, kwargs)
        reads = isinstance(result, bool | int | float | complex)
        if (reads or function._schema.is_mutable) and telling.otherwise() and by_an_answer():
            self._read += reads
            if reads and self._read == FEW:
                telling.tell(READ)
            for tensor in written(function, args, kwargs or {}):
                if tensor.numel() > FEW and tensor not in self._memory and tensor not in self._known:
                    telling.tell(EARLIER)
        return result
