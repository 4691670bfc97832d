"""Running an answer to `hvp`."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.checks.data import Answer, Case, Observation
from course_utils.checks.observers.lesson_05_higher_order_gradients.results import left_behind, point, result_of
from course_utils.checks.observers.lesson_05_higher_order_gradients.surroundings import facts_about
from course_utils.checks.observers.lesson_05_higher_order_gradients.watched import tried_on
from course_utils.checks.scenes.lesson_05_higher_order_gradients.hvp import scalar

MANY = 100  # numbers in x, from which on a Hessian is large


def observe(answer: Answer, case: Case) -> Observation:
    x, v = (point(case, name) for name in ("x", "v"))
    before = facts_about(x=x, v=v)
    largest = _Largest()
    with largest if x.numel() >= MANY else nullcontext():  # it doubles the time
        earlier = (x.detach() + 1, v.detach().clone()) if case.given["again"] else ()
        returned, seen = tried_on(answer, scalar(case.given["function"]), x, v, earlier=earlier)
    left = left_behind({"x": x, "v": v}, case, before, seen)
    return {**result_of(returned), **left, "largest": largest.numel}


class _Largest(TorchDispatchMode):
    """The size of the largest tensor that was made in the body."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.numel = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, list | tuple) else (result,):
            if isinstance(tensor, torch.Tensor):
                self.numel = max(self.numel, tensor.numel())
        return result
