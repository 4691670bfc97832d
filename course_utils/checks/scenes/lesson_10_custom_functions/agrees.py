"""What an answer to `agrees` is tried on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Forward = Callable[[torch.Tensor], torch.Tensor]

Backward = Callable[[torch.Tensor, torch.Tensor], "torch.Tensor | None"]


def _made(forward: Forward, backward: Backward) -> Forward:
    """Return a function of one tensor whose gradient is backward(x, incoming gradient)."""

    class Given(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx: Any, incoming: torch.Tensor) -> torch.Tensor | None:
            (x,) = ctx.saved_tensors
            return backward(x, incoming)

    def given(x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = Given.apply(x)  # type: ignore[no-untyped-call]
        return result

    return given


_MIX = torch.tensor([[0.7, -1.3, 2.1, 0.4], [1.9, 0.6, -0.8, 1.1], [-0.5, 1.7, 0.9, -2.3]], dtype=torch.float64)


def _softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def _through_softmax(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    y = _softmax(x)
    return y * (g - (g * y).sum(-1, keepdim=True))


def _all_but_last(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    gradient = g * x.cos()
    gradient[-1, -1] = 0
    return gradient


def _off_at_the_flattest(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    gradient = g * x.exp()
    return torch.where(x == x.min(), 1.01 * gradient, gradient)


def _nan_at_the_largest(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    return torch.where(x == x.max(), torch.nan, g * x.cos())


def _level(x: torch.Tensor) -> torch.Tensor:
    return x.sin().square() + x.cos().square()


def _nan_though_level(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    return torch.where(x == x.max(), torch.nan, 0 * g)


def _off_between(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """Wrong where each number is near 1 or -1, as in its case: numbers of one's own choice are hardly ever."""
    return torch.where(((x.abs() > 0.89) & (x.abs() < 1.21)).all(), 1.5 * g, g) * x.cos()


_FUNCTIONS: dict[str, tuple[Forward, Backward]] = {
    "cube": (lambda x: x**3, lambda x, g: 3 * g * x**2),
    "steep": (lambda x: (4 * x).exp(), lambda x, g: 4 * g * (4 * x).exp()),
    "mix": (lambda x: x @ _MIX, lambda x, g: g @ _MIX.T),
    "softmax": (_softmax, _through_softmax),
    "flip": (lambda x: x.flip(1) * 2, lambda x, g: 2 * g.flip(1)),
    "total": (lambda x: x.pow(2).sum(), lambda x, g: 2 * g * x),
    "sine, slightly off": (lambda x: x.sin(), lambda x, g: 1.01 * g * x.cos()),
    "small sine, off": (lambda x: 0.01 * x.sin(), lambda x, g: 0.0101 * g * x.cos()),
    "sine without the last": (lambda x: x.sin(), _all_but_last),
    "sine, sign exchanged": (lambda x: x.sin(), lambda x, g: -g * x.cos()),
    "sine, NaN at one place": (lambda x: x.sin(), _nan_at_the_largest),
    "cube, wrong below zero": (lambda x: x**3, lambda x, g: 3 * g * x * x.abs()),
    "exponential, off where it is flat": (lambda x: x.exp(), _off_at_the_flattest),
    "sine without incoming": (lambda x: x.sin(), lambda x, g: x.cos()),
    "softmax, only its diagonal": (_softmax, lambda x, g: g * _softmax(x) * (1 - _softmax(x))),
    "softmax without a gradient": (_softmax, lambda x, g: torch.zeros_like(x)),
    "flip not flipped back": (lambda x: x.flip(1) * 2, lambda x, g: 2 * g),
    "cumulated forwards": (lambda x: x.cumsum(1), lambda x, g: g.cumsum(1)),
    "mix, rows exchanged": (lambda x: x @ _MIX, lambda x, g: g @ _MIX.flip(0).T),
    "level": (_level, lambda x, g: 0 * g),
    "level, NaN at one place": (_level, _nan_though_level),
    "sine, off in between": (lambda x: x.sin(), _off_between),
    "total, off": (lambda x: x.pow(2).sum(), lambda x, g: 3 * g * x),
    "level, nothing returned": (_level, lambda x, g: None),
    "nothing returned": (lambda x: 3 * x, lambda x, g: None),
}


def function(name: str) -> Forward:
    """Return the function of a name, made anew: nothing that is kept tells which one it is."""
    return _made(*_FUNCTIONS[name])
