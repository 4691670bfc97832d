"""Running an answer to `straight_through`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.checks.observers.lesson_06_detach_vs_no_grad.watching import is_result, marks_on


def observe(answer: Answer, case: Case) -> Observation:
    x = case.given["x"].tensor().requires_grad_(case.given["live"])
    given = x.t() if case.given["transposed"] else x * 1
    before = Array.of(given)
    y = answer(given)
    seen: Observation = {"returned": plain(y), "graph": is_result(y), "gradient": None}
    seen["leaf"] = seen["graph"] and y.is_leaf
    flagged = given.requires_grad is not case.given["live"]
    seen["marks"] = [*marks_on(x=given), *(["requires_grad of x"] if flagged else [])]
    direction = case.given["direction"].tensor()
    seen["fits"] = type(y) is torch.Tensor and y.shape == direction.shape
    if x.requires_grad and seen["fits"] and y.requires_grad:
        (gradient,) = torch.autograd.grad(y, x, direction.to(y.dtype), allow_unused=True)
        seen["gradient"] = plain(gradient)
    return {**seen, "x": Array.of(given) == before}
