"""Running an answer to `jacobian`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.lesson_02_how_backward_works.tensors import laid_out, left
from course_utils.checks.scenes.lesson_02_how_backward_works.jacobian import MAPS


def observe(answer: Answer, case: Case) -> Observation:
    x = laid_out(case.given["x"], case).requires_grad_(case.given["requires_grad"])
    if case.given["held"]:
        x.grad = torch.full_like(x, 7.0)
    inner = MAPS[case.given["function"]]
    calls = 0

    def f(point: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return inner(point)

    returned = plain(answer(f, x))
    return {"returned": returned, "calls": calls, "grad": plain(x.grad), **left({"x": x}, case)}
