"""Running an answer to `fit_points`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Array, Case, Observation, plain


def observe(answer: Answer, case: Case) -> Observation:
    points, wanted = case.given["points"].tensor(), case.given["wanted"].tensor()
    returned = answer(points, wanted, case.given["steps"])
    moved = returned[0] if isinstance(returned, tuple | list) and returned else None
    same = Array.of(points) == case.given["points"] and Array.of(wanted) == case.given["wanted"]
    return {
        "returned": plain(returned),
        "same": same and points.grad is None and not points.requires_grad,
        "shares": isinstance(moved, torch.Tensor)
        and moved.untyped_storage().data_ptr() == points.untyped_storage().data_ptr(),
        "requires a gradient": isinstance(moved, torch.Tensor) and moved.requires_grad,
    }
