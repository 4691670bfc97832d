"""What an answer to `largest_rate` is tried on: bowls whose curvatures are known."""

from __future__ import annotations

import torch

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_05_higher_order_gradients.maps import Map
from course_utils.checks.scenes.numbers import numbers


def bowl(case: Case) -> tuple[Map, torch.Tensor]:
    """Return a bowl that bends as the case says, in directions that its seed decides, and a leaf to start from.

    Along the axes, each number has a curvature of its own. Only the last two are turned: the steepest direction is
    their difference, and all begins where that is right. A product with the matrix keeps two equal numbers equal, as
    it multiplies them by powers of two, so that no rounding brings the steepest direction in.

    A single number begins at zero.
    """
    seed, curvatures = case.given["seed"], torch.tensor(case.given["curvatures"], dtype=torch.float64)
    n = len(curvatures)
    generator = torch.Generator().manual_seed(seed)
    directions, _ = torch.linalg.qr(torch.randn(n, n, dtype=torch.float64, generator=generator))
    matrix = directions @ curvatures.diag() @ directions.T
    slope = numbers(seed + 1, n, dtype=torch.float64)
    w = numbers(seed + 2, n, dtype=torch.float64) * (n > 1)
    if case.given["along the axes"]:
        matrix, (less, most) = curvatures.diag(), curvatures[-2:].tolist()
        block = [[most + less, less - most], [less - most, most + less]]
        matrix[-2:, -2:] = torch.tensor(block, dtype=torch.float64) / 2
        w[-1], slope[-1] = w[-2], slope[-2]
    w.requires_grad_()
    w.grad = torch.full_like(w, 5.0)
    return lambda point: point @ matrix @ point / 2 + slope @ point + 3, w
