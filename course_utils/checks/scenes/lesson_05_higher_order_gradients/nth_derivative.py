"""What an answer to `nth_derivative` is tried on."""

from __future__ import annotations

import torch

from course_utils.checks.scenes.lesson_05_higher_order_gradients.maps import Map, Weighted

ELEMENTWISE: dict[str, Map] = {
    "polynomial": lambda x: 2 * x**4 - 3 * x**3 + 5 * x,
    "sine": lambda x: torch.sin(1.5 * x),
    "exponential": lambda x: torch.exp(-0.7 * x),
    "line": lambda x: 2.5 * x + 1.5,
    "constant": lambda x: torch.full_like(x, 3.5),
}


def elementwise(name: str) -> Map:
    """Return one of the functions above, or one with a parameter: a line, or a sine."""
    match name:
        case "weighted line":
            return Weighted(lambda weight, x: weight * x)
        case "weighted sine":
            return Weighted(lambda weight, x: weight * torch.sin(1.5 * x))
    return ELEMENTWISE[name]
