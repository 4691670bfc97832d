"""Running an answer to `largest_rate`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.scenes.lesson_05_higher_order_gradients.largest_rate import bowl


def observe(answer: Answer, case: Case) -> Observation:
    loss, w = bowl(case)
    before, graded = plain(w), plain(w.grad)
    calls = 0

    def counted(point: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return loss(point)

    returned = plain(answer(counted, w))
    return {"returned": returned, "calls": calls, "moved": plain(w) != before, "graded": plain(w.grad) != graded}
