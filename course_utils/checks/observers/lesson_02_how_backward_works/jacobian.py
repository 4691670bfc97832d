"""Running an answer to `jacobian`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.lesson_02_how_backward_works.tensors import laid_out, left
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.scenes.lesson_02_how_backward_works.jacobian import MAPS


def observe(answer: Answer, case: Case) -> Observation:
    x = laid_out(case, "x")
    inner = MAPS[case.given["function"]]
    calls = 0

    def f(point: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return inner(point)

    if "earlier" in case.given:  # another point of the same f, in the same tensor
        x.data.copy_(case.given["earlier"].tensor())
        answer(f, x)
        x.data.copy_(case.given["x"].tensor())
        calls = 0
    with every_pass() as passes:
        returned = plain(answer(f, x))
    return {"returned": returned, "calls": calls, "passes": len(passes), "grad": plain(x.grad), **left({"x": x}, case)}
