"""What an answer to `one_pass` is tried on."""

from __future__ import annotations

import torch

from course_utils.checks.data import Case
from course_utils.checks.scenes.numbers import numbers


def losses_and_leaves(case: Case) -> tuple[list[torch.Tensor], dict[str, torch.Tensor]]:
    """Return the losses of a scene and every leaf behind them, by name."""
    seed = case.given["seed"]
    w, v, u = (numbers(seed + n, *shape).requires_grad_() for n, shape in enumerate([(4, 3), (3,), (3, 2)]))
    x = numbers(seed + 5, 5, 4)
    h = (x @ w).tanh()
    match case.given["scene"]:
        case "two heads":
            return [(h * v).square().mean(), (h @ u).exp().mean()], {"w": w, "v": v, "u": u}
        case "a short and a long branch":
            long = (h * v).sin().exp() * h
            return [h.sum(), long.mean(), (h * h).mean()], {"w": w, "v": v}
        case "separate graphs":
            t = numbers(seed + 6, 3).requires_grad_()
            losses = [(h @ u).exp().mean(), (v * v).sum().exp(), t.sin().sum()]
            return losses, {"w": w, "u": u, "v": v, "t": t}
        case "one loss, listed twice":
            loss = (h * v).exp().mean()
            return [loss, (h @ u).mean(), loss], {"w": w, "v": v, "u": u}
        case "one loss is part of another":
            first = (h * v).exp().mean()
            return [first, first * (h @ u).mean()], {"w": w, "v": v, "u": u}
    loss = (h * v).square().mean()  # a single loss
    return [loss], {"w": w, "v": v}
