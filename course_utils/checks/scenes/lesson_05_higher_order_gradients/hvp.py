"""What an answer to `hvp` is tried on."""

from __future__ import annotations

import torch

from course_utils.checks.scenes.lesson_05_higher_order_gradients.maps import Map, Weighted, doubles

# Made here, because random numbers may not be drawn inside vmap.
_MIXER = doubles(51, 3, 300)


def _mixed(x: torch.Tensor) -> torch.Tensor:
    flat = x.reshape(-1)
    mixer = _MIXER[:, : flat.numel()] / flat.numel() ** 0.5
    result: torch.Tensor = (mixer @ flat).sin().prod() + (mixer[0] * flat.square() * flat.roll(1)).sum() / flat.numel()
    return result


SCALAR: dict[str, Map] = {
    "mixed": _mixed,
    "steep": lambda x: 1e6 * _mixed(x),
    "at rest": lambda x: 1e-9 * (x.square().sum() + (x * x.roll(1, 0)).sum()),
    "line": lambda x: (3 * x).sum(),
    "half a line": lambda x: x[0].square().prod() + (2 * x[1:]).sum(),
}


def scalar(name: str) -> Map:
    """Return one of the functions above, or one with a parameter: a line, or a function of a softmax."""
    match name:
        case "weighted line":
            return Weighted(lambda weight, x: weight * x.sum())
        case "weighted softmax":
            return Weighted(lambda weight, x: weight * (x.softmax(0) * x.roll(1, -1)).square().sum())
    return SCALAR[name]
