"""Right and wrong answers to `hvp`."""

import torch

from tests.answers.leaving import gradients_off, leaving
from tests.answers.lesson_05_higher_order_gradients.side_effects import hook_on
from tests.answers.said import said


def hvp_by_seed(f, x, v):
    own = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(f(own), own, create_graph=True)
    if not gradient.requires_grad:
        return torch.zeros_like(x)
    return torch.autograd.grad(gradient, own, v, materialize_grads=True)[0]


def hvp_forward_over_reverse(f, x, v):
    return torch.func.jvp(torch.func.grad(f), (x.detach(),), (v,))[1].detach()


def hvp_by_scalar(f, x, v):
    own = x.detach().clone().requires_grad_(True)
    own.grad = None
    f(own).backward(create_graph=True, inputs=[own])
    along = (own.grad * v).sum()
    own.grad = None
    if not along.requires_grad:
        return v * 0
    return torch.autograd.grad(along, own, materialize_grads=True)[0]


def hvp_into_parameters(f, x, v):
    """The second pass also writes to .grad of f's own parameters."""
    own = x.detach().clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(f(own), own, create_graph=True)
    if not gradient.requires_grad:
        return torch.zeros_like(x)
    (gradient * v).sum().backward()
    return own.grad if own.grad is not None else torch.zeros_like(x)


def hvp_measured_at_once(f, x, v):
    """Differences of gradients, with one call of f for all points."""
    h, shape = 1e-3, (-1, *[1] * x.dim())
    shifts = torch.tensor([1.0, -1.0, 2.0, -2.0], dtype=x.dtype) * h
    near, far, further, furthest = torch.func.vmap(torch.func.grad(f))(x.detach() + shifts.reshape(shape) * v)
    return ((8 * (near - far) - (further - furthest)) / (12 * h)).detach()


def hvp_reverse_over_forward(f, x, v):
    slope = torch.func.grad(lambda t: torch.func.jvp(f, (t,), (v,))[1])
    return slope(x.detach()).detach()


def hvp_by_library(f, x, v):
    return torch.autograd.functional.hvp(f, x.detach(), v)[1]


def hvp_gradient_times_v(f, x, v):
    return torch.func.grad(f)(x.detach()) * v


def hvp_row_sums(f, x, v):
    return hvp_by_seed(f, x, torch.ones_like(v)) * v


def hvp_whole(f, x, v):
    hessian = torch.func.hessian(f)(x.detach()).reshape(x.numel(), x.numel())
    return (hessian @ v.reshape(-1)).reshape(x.shape)


def hvp_rows(f, x, v):
    """Row by row: no large matrix, but a pass for each row."""
    own = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(f(own), own, create_graph=True)
    if not gradient.requires_grad:
        return torch.zeros_like(x)
    rows = [torch.autograd.grad(g, own, retain_graph=True)[0] for g in gradient.reshape(-1)]
    return torch.stack([(row * v).sum() for row in rows]).reshape(x.shape)


def hvp_differences(f, x, v):
    gradient, h = torch.func.grad(f), 1e-4
    return (gradient(x.detach() + h * v) - gradient(x.detach() - h * v)) / (2 * h)


def hvp_on_x(f, x, v):
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(f(x), x, create_graph=True)
    return torch.autograd.grad(gradient, x, v)[0] if gradient.requires_grad else torch.zeros_like(x)


def hvp_recorded(f, x, v):
    own = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(f(own), own, create_graph=True)
    return torch.autograd.grad(gradient, own, v, create_graph=True)[0] if gradient.requires_grad else x * 0


def hvp_retained(f, x, v):
    own = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(f(own), own, retain_graph=True)
    return torch.autograd.grad(gradient, own, v)[0] if gradient.requires_grad else torch.zeros_like(x)


RIGHT = [hvp_by_seed, hvp_forward_over_reverse, hvp_by_scalar, hvp_reverse_over_forward, hvp_by_library]

MISCONCEIVED = {
    "the gradient times v": hvp_gradient_times_v,
    "row sums times v": hvp_row_sums,
    "the whole Hessian": hvp_whole,
}

WRONG = [
    hvp_rows,
    said(hvp_into_parameters, "row sums times v"),
    hvp_measured_at_once,
    leaving(hvp_by_seed, gradients_off),
    leaving(hvp_by_seed, lambda f, x, v: hook_on(x)),
    lambda f, x, v: hvp_by_seed(f, x.double(), v.double()),
    hvp_differences,
    hvp_on_x,
    hvp_recorded,
    hvp_retained,
    lambda f, x, v: torch.func.grad(f)(x.detach()),
    lambda f, x, v: (v * hvp_by_seed(f, x, v)).sum(),
    lambda f, x, v: hvp_by_seed(f, x, v) / v.norm(),
    lambda f, x, v: hvp_by_seed(f, x, v).reshape(-1),
    lambda f, x, v: (f(x), hvp_by_seed(f, x, v)),
    lambda f, x, v: torch.zeros_like(x),
    lambda f, x, v: hvp_by_seed(f, x.view(-1), v.view(-1)).view(x.shape),
    lambda f, x, v: hvp_by_seed(f, x, v) + 1e-3 * v,
]

STILL_RIGHT = {"keeps every graph"}
