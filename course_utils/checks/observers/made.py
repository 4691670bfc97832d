"""What is made while an answer runs: as tensors, which can be weighed, or as numbers of Python's own, which cannot."""

from __future__ import annotations

from typing import Any

from course_utils.checks.observers import telling
from course_utils.checks.observers.by_hand import READ, by_an_answer
from course_utils.graph.alive import PeakMemory

FEW = 64  # numbers that an answer may take out of PyTorch one by one: settings, sums, sizes


class Made(PeakMemory):
    """The memory of tensors made in the body. In the second way of observing it tells of an answer that reads many."""

    def __init__(self) -> None:
        super().__init__()
        self._read = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_dispatch__(function, types, args, kwargs)
        if isinstance(result, bool | int | float | complex) and telling.otherwise() and by_an_answer():
            self._read += 1
            if self._read == FEW:
                telling.tell(READ)
        return result
