"""Right and wrong answers to `straight_through`."""

import torch

from tests.answers.leaving import leaving
from tests.answers.lesson_06_detach_vs_no_grad.side_effects import hook_left, keeps_gradient
from tests.answers.magnitudes import squeezed
from tests.answers.said import said


def straight_by_detach(x):
    return x + (x.round() - x).detach()


def straight_by_no_grad(x):
    with torch.no_grad():
        change = x.round() - x
    return x + change


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def straight_half_up(x):
    """Rounds halves up, where torch.round goes to the even neighbour."""
    return x + ((x + 0.5).floor() - x).detach()


def straight_without_the_small(x):
    """Takes a small gradient for none."""
    y = straight_by_detach(x)
    if y.requires_grad:
        y.register_hook(lambda gradient: gradient * (gradient.abs() > 1e-6))
    return y


def straight_with(before):
    """Leaves something behind on x."""

    def through(x):
        before(x)
        return straight_by_detach(x)

    return through


def straight_in_place(x):
    x.data.round_()
    return x * 1


def straight_remembered():
    """Takes the change of the first call for all later ones of that shape."""
    changes = {}

    def through(x):
        return x + changes.setdefault(x.shape, (x.round() - x).detach())

    return through


RIGHT = [
    straight_by_detach,
    straight_by_no_grad,
    Straight.apply,
    lambda x: x - x.detach() + x.round().detach(),
]

MISCONCEIVED = {
    "rounding alone": lambda x: x.round(),
    "a new leaf": lambda x: x.detach().round().requires_grad_(),
    "the other part": lambda x: x.round() + (x - x.round()).detach(),
}

WRONG = [
    squeezed(straight_by_detach),
    straight_in_place,
    straight_half_up,
    straight_without_the_small,
    straight_hooked := straight_with(hook_left),
    straight_writing := leaving(straight_by_detach, lambda x: x.data.mul_(2)),
    straight_with(keeps_gradient),
    straight_with(torch.Tensor.requires_grad_),
    straight_with(lambda x: torch.set_grad_enabled(False)),
    straight_always := lambda x: straight_by_detach(x if x.requires_grad else x.clone().requires_grad_()),
    lambda x: x,
    lambda x: x.detach(),
    said(lambda x: x.detach().requires_grad_().round() * 1, "a new leaf"),
    straight_cut := lambda x: x.detach().round(),
    lambda x: x.floor() + (x - x.floor()),
    lambda x: x + (x.floor() - x).detach(),
    lambda x: x * (x.round() / x).detach(),
    lambda x: x.clone().requires_grad_() if x.is_leaf else x.round() + 0 * x,
    lambda x: x.round().requires_grad_() if x.grad_fn is None else x.round() * 1,
    lambda x: (x + (x.round() - x).detach()).double(),
    straight_remembered(),
    said(lambda x: (x + (x.round() - x).detach()).requires_grad_(), "a new leaf"),
    straight_scaled := lambda x: straight_by_detach(x).detach() + 2 * (x - x.detach()),
    lambda x: x.detach().round() + x - x.detach(),
]

GUARDS = {
    "It returns the numbers of `x`, rounded as `torch.round` does.": {"value": straight_half_up},
    "In the backward pass the gradient goes to `x` unchanged": {"graph": straight_cut, "value": straight_scaled},
    "If `x` requires no gradient, neither does the result.": {"no gradient": straight_always},
    "`x` stays as it was, and no hook is left on it.": {"input": straight_writing, "as before": straight_hooked},
}

EQUIVALENT = {
    "RIGHT[3]: x.round().detach() -> x.round()": "The gradient of round is zero: cut or not, nothing comes by it.",
    "RIGHT[3]: x.round().detach -> x.round().clone": "The gradient of round is zero: cut or not, nothing comes by it.",
}
