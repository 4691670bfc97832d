"""What an answer to `largest_rate` is tried on: bowls whose curvatures are known."""

from __future__ import annotations

import torch

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_05_higher_order_gradients.maps import Map
from course_utils.checks.scenes.numbers import numbers


def bowl(case: Case) -> tuple[Map, torch.Tensor]:
    """Return a bowl that bends as the case says, in directions that its seed decides, and a leaf to start from.

    Along the axes, each number has a curvature of its own, and the last begins where its slope is zero.
    """
    seed, curvatures = case.given["seed"], torch.tensor(case.given["curvatures"], dtype=torch.float64)
    n = len(curvatures)
    generator = torch.Generator().manual_seed(seed)
    directions, _ = torch.linalg.qr(torch.randn(n, n, dtype=torch.float64, generator=generator))
    matrix = directions @ curvatures.diag() @ directions.T
    slope = numbers(seed + 1, n, dtype=torch.float64)
    w = numbers(seed + 2, n, dtype=torch.float64)
    if case.given["along the axes"]:
        matrix = curvatures.diag()
        w[-1] = slope[-1] = 0
    w.requires_grad_()
    w.grad = torch.full_like(w, 5.0)
    return lambda point: point @ matrix @ point / 2 + slope @ point + 3, w
