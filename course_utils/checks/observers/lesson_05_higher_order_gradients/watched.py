"""Functions that count how often, and in which graph mode, they are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from course_utils.checks.data import Observation
from course_utils.checks.scenes.lesson_05_higher_order_gradients.maps import Weighted


def batched(tensor: Any) -> bool:
    """Return whether a tensor stands for several at once, inside vmap."""
    functorch = torch._C._functorch
    while isinstance(tensor, torch.Tensor) and functorch.is_functorch_wrapped_tensor(tensor):
        if functorch.is_batchedtensor(tensor):
            return True
        tensor = functorch.get_unwrapped(tensor)
    return False


def counter(passes: set[int]) -> Callable[[torch.Tensor], None]:
    return lambda gradient: passes.add(torch._C._current_graph_task_id())


class Watched:
    """A function that counts its calls, and the backward passes that arrive at the points it was called with."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self._function = function
        self._calls = 0
        self._batched = False
        self._passes: set[int] = set()
        self._handles: list[Any] = []

    def __call__(self, point: torch.Tensor) -> torch.Tensor:
        self._calls += 1
        self._batched = self._batched or batched(point)
        ordinary = isinstance(point, torch.Tensor) and not torch._C._functorch.is_functorch_wrapped_tensor(point)
        if ordinary and point.requires_grad:
            self._handles.append(point.register_hook(counter(self._passes)))
        return self._function(point)

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()

    def seen(self) -> Observation:
        own = not isinstance(self._function, Weighted) or self._function.weight.grad is None
        return {"calls": self._calls, "batched": self._batched, "passes": len(self._passes), "own parameter": own}
