"""What an answer to `loss_hessian` is tried on."""

from __future__ import annotations

from collections.abc import Callable

import torch

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_05_higher_order_gradients.maps import doubles
from course_utils.checks.scenes.numbers import by_columns

_INPUTS, _TARGETS, _SLOPES = doubles(61, 7, 2), doubles(62, 7), doubles(63, 2)


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


def _product(p: list[torch.Tensor]) -> torch.Tensor:
    """Linear in each of the two, and not in both: all second derivatives are mixed ones."""
    row, matrix = p
    return 1e6 * (row @ matrix * _SLOPES).sum()


def _with_a_spare(p: list[torch.Tensor]) -> torch.Tensor:
    spare, scale, shift = p
    del spare
    return (scale * scale * shift.exp() + (scale * shift).sin()).sum()


def _at_rest(p: list[torch.Tensor]) -> torch.Tensor:
    """The gradient for the first is zero, and its second derivatives are not."""
    first, second = p
    away = first - first.detach()
    return 1e-9 * (away.square().sum() + 1) * second.square().sum()


def _of_one_matrix(p: list[torch.Tensor]) -> torch.Tensor:
    (matrix,) = p
    return (matrix @ matrix).sin().sum()


def _one_number(p: list[torch.Tensor]) -> torch.Tensor:
    return p[0].sin().exp()


LOSSES: dict[str, tuple[list[tuple[int, ...]], Callable[[list[torch.Tensor]], torch.Tensor]]] = {
    "two layers": ([(2, 3), (3,), (3,)], _two_layers),
    "straight in one": ([(2,), (3,)], _straight_in_one),
    "straight": ([(2,), (3,)], _straight),
    "a product": ([(3,), (3, 2)], _product),
    "at rest": ([(2,), (3,)], _at_rest),
    "a spare": ([(2,), (3,), ()], _with_a_spare),
    "a square": ([(3, 3)], _of_one_matrix),
    "one number": ([()], _one_number),
}


def parameters_of(case: Case) -> list[torch.Tensor]:
    """Return the case's parameters as leaves; matrices are not contiguous."""
    shapes, _ = LOSSES[case.given["loss"]]
    made = [doubles(case.given["seed"] + n, *shape) for n, shape in enumerate(shapes)]
    single = {"all": len(made), "the first": 1}.get(case.given["single"], 0)
    made = [number.float() if n < single else number for n, number in enumerate(made)]
    return [(by_columns(t) if t.dim() == 2 else t).requires_grad_() for t in made]
