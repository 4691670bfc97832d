"""Right and wrong answers to `nth_derivative`."""

import torch

from tests.answers.leaving import gradients_off, leaving
from tests.answers.lesson_05_higher_order_gradients.side_effects import hook_on
from tests.answers.said import said


def nth_by_passes(f, x, n):
    own = x.detach().requires_grad_()
    y = f(own)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        (y,) = torch.autograd.grad(y.sum(), own, create_graph=True, materialize_grads=True)
    return y.detach()


def nth_by_func(f, x, n):
    """Nested torch.func.grad: they give zeros where autograd raises."""

    def derivative(g):
        return torch.func.grad(lambda t: g(t).sum())

    g = f
    for _ in range(n):
        g = derivative(g)
    return g(x.detach()).detach()


def nth_by_ones(f, x, n):
    own = x.clone().detach().requires_grad_(True)
    y = f(own)
    for number in range(1, n + 1):
        if y.grad_fn is None:
            y = torch.zeros_like(own)
            break
        y = torch.autograd.grad(y, own, torch.ones_like(y), create_graph=number < n, allow_unused=True)[0]
        if y is None:
            return torch.zeros_like(own).detach()
    return y.detach()


def nth_forward_mode(f, x, n):
    def derivative(g):
        return lambda t: torch.func.jvp(g, (t,), (torch.ones_like(t),))[1]

    g = f
    for _ in range(n):
        g = derivative(g)
    return g(x.detach()).detach()


def nth_without_zeros(f, x, n):
    """Fails where what f's parameter leaves over does not depend on x."""
    own = x.detach().requires_grad_()
    y = f(own)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        (y,) = torch.autograd.grad(y.sum(), own, create_graph=True)
    return y.detach()


def nth_into_parameters(f, x, n):
    """With backward, which also writes to .grad of f's own parameters."""
    own = x.detach().requires_grad_()
    y = f(own)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        own.grad = None
        y.sum().backward(create_graph=True)
        y = own.grad if own.grad is not None else torch.zeros_like(own)
    own.grad = None
    return y.detach()


def nth_accumulated(f, x, n):
    own = x.detach().clone().requires_grad_()
    y = f(own)
    if n == 0:
        return y.detach()
    for _ in range(n):
        if not y.requires_grad:
            break
        y.sum().backward(create_graph=True)
        y = own.grad
    result = own.grad.detach() if own.grad is not None else torch.zeros_like(x)
    own.grad = None
    return result


def nth_one_more(f, x, n):
    return nth_by_passes(f, x, n + 1)


def nth_retained(f, x, n):
    own = x.detach().requires_grad_()
    y = f(own)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        (y,) = torch.autograd.grad(y.sum(), own, retain_graph=True)
    return y.detach()


def nth_unguarded(f, x, n):
    own = x.detach().requires_grad_()
    y = f(own)
    for _ in range(n):
        (y,) = torch.autograd.grad(y.sum(), own, create_graph=True)
    return y.detach()


def nth_recorded(f, x, n):
    own = x.detach().requires_grad_()
    y = f(own)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        (y,) = torch.autograd.grad(y.sum(), own, create_graph=True)
    return y


def nth_by_differences(f, x, n):
    def derivative(g, h=1e-3):
        return lambda t: (g(t + h) - g(t - h)) / (2 * h)

    g = f
    for _ in range(n):
        g = derivative(g)
    return g(x.detach())


def nth_on_x(f, x, n):
    x.requires_grad_()
    y = f(x)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return y.detach()


def nth_forward_each_time(f, x, n):
    nth_by_passes(f, x, n)
    return nth_by_passes(f, x, n)


def nth_after_clearing(f, x, n):
    """With backward, clearing .grad of x itself."""
    x.requires_grad_()
    y = f(x)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        x.grad = None
        y.sum().backward(create_graph=True)
        y = x.grad
    x.grad = None
    return y.detach()


RIGHT = [nth_by_passes, nth_by_func, nth_by_ones, nth_forward_mode]

MISCONCEIVED = {
    "all derivatives added up": nth_accumulated,
    "one pass too many": nth_one_more,
    "retained, not recorded": nth_retained,
}

WRONG = [
    nth_unguarded,
    nth_without_zeros,
    said(nth_into_parameters, "one pass too many", "retained, not recorded"),
    leaving(nth_by_passes, gradients_off),
    leaving(nth_by_passes, lambda f, x, n: hook_on(x)),
    lambda f, x, n: nth_by_passes(f, x.double(), n),
    nth_recorded,
    nth_by_differences,
    nth_on_x,
    nth_forward_each_time,
    nth_after_clearing,
    lambda f, x, n: torch.func.grad(lambda t: f(t).sum())(x.detach()) ** n,
    said(lambda f, x, n: nth_by_passes(f, x.clone(), min(n, 4)) * (n < 5), "retained, not recorded"),
    lambda f, x, n: nth_by_passes(f, x.flatten(), n),
    lambda f, x, n: nth_by_passes(f, x, n).sum(),
    lambda f, x, n: [[None], "x", {}],
]
