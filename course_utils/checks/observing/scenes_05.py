"""What lesson 05's answers are tried on: functions, losses of a few parameters, critics, and models to adapt."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.observing.models import numbers, seeded

Map: TypeAlias = Callable[[torch.Tensor], torch.Tensor]


def doubles(seed: int, *shape: int) -> torch.Tensor:
    """Return float64 numbers that are nowhere near zero."""
    return numbers(seed, *shape, dtype=torch.float64)


# For nth_derivative: functions that act on each number by itself.

ELEMENTWISE: dict[str, Map] = {
    "polynomial": lambda x: 2 * x**4 - 3 * x**3 + 5 * x,
    "sine": lambda x: torch.sin(1.5 * x),
    "exponential": lambda x: torch.exp(-0.7 * x),
    "line": lambda x: 2.5 * x + 1.5,
    "constant": lambda x: torch.full_like(x, 3.5),
}


class Weighted:
    """A function with a parameter of its own, as a layer has."""

    def __init__(self, function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        self.weight = torch.tensor(1.7, dtype=torch.float64, requires_grad=True)
        self._function = function

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self._function(self.weight, x)


def elementwise(name: str) -> Map:
    """Return one of the functions above, or the weighted line, whose slope is a parameter."""
    return Weighted(lambda weight, x: weight * x) if name == "weighted line" else ELEMENTWISE[name]


# For hvp: functions from a tensor to one number, whose Hessians are full.


# Made here, because random numbers may not be drawn inside vmap.
_MIXER = doubles(51, 3, 300)
_INPUTS, _TARGETS, _SLOPES = doubles(61, 7, 2), doubles(62, 7), doubles(63, 2)


def _mixed(x: torch.Tensor) -> torch.Tensor:
    flat = x.reshape(-1)
    mixer = _MIXER[:, : flat.numel()] / flat.numel() ** 0.5
    result: torch.Tensor = (mixer @ flat).sin().prod() + (mixer[0] * flat.square() * flat.roll(1)).sum() / flat.numel()
    return result


SCALAR: dict[str, Map] = {
    "mixed": _mixed,
    "softmax": lambda x: (x.softmax(0) * x.roll(1, -1)).square().sum(),
    "line": lambda x: (3 * x).sum(),
    "half a line": lambda x: x[0].square().prod() + (2 * x[1:]).sum(),
}


def scalar(name: str) -> Map:
    """Return one of the functions above, or the weighted line, whose slope is a parameter."""
    return Weighted(lambda weight, x: weight * x.sum()) if name == "weighted line" else SCALAR[name]


# For loss_hessian: parameters, and the loss as a function of them.


def _two_layers(p: list[torch.Tensor]) -> torch.Tensor:
    weight, bias, last = p
    hidden = torch.tanh(_INPUTS @ weight + bias)
    return (hidden @ last - _TARGETS).square().mean()


def _straight_in_one(p: list[torch.Tensor]) -> torch.Tensor:
    straight, bent = p
    return (straight * _SLOPES).sum() + bent.prod() * bent.square().sum()


def _straight(p: list[torch.Tensor]) -> torch.Tensor:
    first, second = p
    return (first * _SLOPES).sum() - 3 * second.sum()


def _with_a_spare(p: list[torch.Tensor]) -> torch.Tensor:
    spare, scale, shift = p
    del spare
    return (scale * scale * shift.exp() + (scale * shift).sin()).sum()


LOSSES: dict[str, tuple[list[tuple[int, ...]], Callable[[list[torch.Tensor]], torch.Tensor]]] = {
    "two layers": ([(2, 3), (3,), (3,)], _two_layers),
    "straight in one": ([(2,), (3,)], _straight_in_one),
    "straight": ([(2,), (3,)], _straight),
    "a spare": ([(2,), (3,), ()], _with_a_spare),
}


def parameters_of(case: Case) -> list[torch.Tensor]:
    """Return the case's parameters as leaves; matrices are not contiguous."""
    shapes, _ = LOSSES[case.given["loss"]]
    made = [doubles(case.given["seed"] + n, *shape) for n, shape in enumerate(shapes)]
    if case.given["single"]:
        made = [number.float() for number in made]
    return [(t.mT.contiguous().mT if t.dim() == 2 else t).requires_grad_() for t in made]


# For penalised_step: a model, its optimizer, and batches.


def regularised(case: Case) -> tuple[nn.Module, torch.optim.Optimizer, list[tuple[torch.Tensor, torch.Tensor]]]:
    """Return a model, an optimizer with momentum, and some batches of different sizes."""
    seed = case.given["seed"]
    model = seeded(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double(), seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=case.given["momentum"])
    batches = [(doubles(seed + size, size, 3), doubles(seed + size + 1, size, 2)) for size in case.given["sizes"]]
    return model, optimizer, batches


# For gradient_penalty: critics that judge vectors or images.


class Flat(nn.Module):
    """Scores of shape (n,) from scores of shape (n, 1)."""

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        return scores.reshape(-1)


def critic_of(case: Case) -> nn.Sequential:
    """Return the case's critic."""
    if case.given["images"]:
        layers = [nn.Conv2d(2, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(18, 1), Flat()]
    else:
        layers = [nn.Linear(3, 5), nn.Tanh(), nn.Dropout(0.5), nn.Linear(5, 1)]
    critic = nn.Sequential(*layers).double()
    critic[2].eval()  # dropout would differ from call to call; that one part of a model is in eval mode is usual
    seeded(critic, case.given["seed"])
    if case.given["frozen"]:
        critic[0].requires_grad_(False)
    return critic


# For meta_gradient: a small regression model.


class Small(nn.Module):
    """Two layers, the first of which may be frozen, and a buffer that shifts the input."""

    shift: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.last = nn.Linear(3, 1)
        self.register_buffer("shift", torch.tensor([0.3, -0.7]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.last(torch.tanh(self.first(x + self.shift)))
        return result


def adaptable(case: Case) -> nn.Module:
    """Return the case's model."""
    model = seeded(Small().double(), case.given["seed"], scale=0.8)
    for name in case.given["frozen"]:
        model.get_parameter(name).requires_grad_(False)
    return model
