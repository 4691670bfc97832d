"""Right and wrong answers to `clip_passing`."""

import torch

from tests.answers.leaving import leaving
from tests.answers.lesson_08_intermediate_gradients.passing import for_one_dtype, hooked, hooked_on_x, retain
from tests.answers.lesson_08_intermediate_gradients.side_effects import (
    leave_zeros,
    switch_on,
    track,
    write_to,
)
from tests.answers.magnitudes import squeezed
from tests.answers.said import said


def shorten(gradient, most):
    return gradient * torch.clamp(most / gradient.norm(), max=1)


def clip_with_if(gradient, most):
    size = gradient.norm()
    return gradient * (most / size) if size > most else gradient


class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, most):
        ctx.most = most
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * min(1.0, ctx.most / (float(gradient.norm()) + 1e-6)), None


def clip_rows(gradient, most):
    return gradient * torch.clamp(most / gradient.norm(dim=-1, keepdim=True), max=1)


def clip_of_two_axes(gradient, most):
    return gradient * torch.clamp(most / gradient.norm(dim=(0, 1)), max=1)


def clip_by_a_view(gradient, most):
    return gradient * torch.clamp(most / gradient.view(-1).norm(), max=1)


def clip_dropping_small_ones(gradient, most):
    return shorten(gradient, most) if gradient.norm() > 1e-6 else torch.zeros_like(gradient)


def clip_to_four_digits(gradient, most):
    return clip_with_if(gradient, most * 0.9999)


def clip_by_the_square(x, most):
    def shortened(gradient):
        square = gradient.square().sum()
        return gradient * (most / square.sqrt()) if square > most else gradient

    y = x.view_as(x)
    if y.requires_grad:
        y.register_hook(shortened)
    return y


def clip_what_leaves(x, most):
    """Clips after the derivative of x's own operation, where there is one."""
    y = x.view_as(x)
    if x.grad_fn is not None:
        x.grad_fn.register_hook(lambda given, _: tuple(None if g is None else shorten(g, most) for g in given))
    elif y.requires_grad:
        y.register_hook(lambda gradient: shorten(gradient, most))
    return y


def clip_and_leave(x, most):
    """The hook takes itself away."""
    y = x * 1
    if y.requires_grad:

        def hook(gradient):
            handle.remove()
            return shorten(gradient, most)

        handle = y.register_hook(hook)
    return y


def clip_once(x, most):
    """The factor of the first pass is used for all."""
    y, factors = x.view_as(x), []

    def change(gradient):
        factors.append(min(1.0, most / float(gradient.norm())))
        return gradient * factors[0]

    if y.requires_grad:
        y.register_hook(change)
    return y


def clip_and_repeat(x, most):
    """Sends what came first each time."""
    y, sent = x.view_as(x), []

    def change(gradient):
        sent.append(shorten(gradient, most))
        return sent[0]

    if y.requires_grad:
        y.register_hook(change)
    return y


RIGHT = [hooked(shorten), lambda x, most: Clip.apply(x, most), hooked(clip_with_if)]

MISCONCEIVED = {
    "number by number": hooked(lambda gradient, most: gradient.clamp(-most, most)),
    "short ones are stretched": hooked(lambda gradient, most: gradient * (most / gradient.norm())),
    "only once": clip_and_leave,
    "row by row": hooked(clip_rows),
    "a hook on x": hooked_on_x(shorten),
}

clip_in_what_arrives = hooked(lambda gradient, most: gradient.mul_(torch.clamp(most / gradient.norm(), max=1)))

ONE_SLIP = {
    "x": leaving(hooked(shorten), write_to),
    "requires_grad": leaving(hooked(shorten), track),
    "held": leaving(hooked(shorten), leave_zeros),
    "retains": leaving(hooked(shorten), retain),
    "mode": leaving(hooked(shorten), switch_on),
    "graph": lambda x, amount: x.detach().clone(),
}


def clip_and_empty_x(x, most):
    """Clips rightly, and writes to x where it has a graph."""
    y = hooked(shorten)(x, most)
    if y.requires_grad:
        x.data.zero_()
    return y


def clip_and_detach_x(x, most):
    y = hooked(shorten)(x, most)
    if x.grad_fn is not None:
        x.detach_()
    return y


WRONG = [
    squeezed(hooked(shorten)),
    *map(hooked, (clip_of_two_axes, clip_by_a_view, clip_dropping_small_ones, clip_to_four_digits)),
    *ONE_SLIP.values(),
    clip_by_the_square,
    clip_what_leaves,
    clip_once,
    clip_and_repeat,
    clip_in_what_arrives,
    hooked(lambda gradient, most: gradient * torch.clamp(most / gradient.norm(p=1), max=1)),
    hooked(lambda gradient, most: gradient * torch.clamp(most / gradient.abs().max(), max=1)),
    hooked(lambda gradient, most: gradient * torch.clamp(most / gradient.norm() ** 2, max=1)),
    lambda x, most: x * torch.clamp(most / x.norm(), max=1),
    lambda x, most: x.clone(),
    for_one_dtype(hooked(shorten)),
    said(hooked(lambda gradient, most: gradient * (most / (gradient.norm() + 1e-6))), "short ones are stretched"),
    clip_and_empty_x,
    clip_and_detach_x,
]

EQUIVALENT = {
    "Clip.forward: return x.view_as(x) -> return x": "A Function that returns its input gives a tensor of its own all the same.",
    "Clip.backward: float(gradient.norm()) -> gradient.norm()": "min() of a number and a tensor with one number compares their numbers, too.",
    "clip_with_if: gradient * (most / size) if size > most else gradient -> gradient * (most / size) if size >= most else gradient": "At the limit the factor is 1: both branches give the same gradient.",
}

GUARDS = {
    "it is shortened to that norm, and its direction stays": {
        "value": MISCONCEIVED["number by number"],
        "graph": ONE_SLIP["graph"],
    },
    "A gradient that is short enough passes as it is.": {"value": MISCONCEIVED["short ones are stretched"]},
    "As in exercise 5, other uses of `x` are not touched, and `x` may require no gradient.": {
        "neighbour": clip_in_what_arrives,
        "x": ONE_SLIP["x"],
        "requires_grad": ONE_SLIP["requires_grad"],
        "held": ONE_SLIP["held"],
        "retains": ONE_SLIP["retains"],
        "mode": ONE_SLIP["mode"],
    },
}


def renormed(gradient, most):
    """Clips each part along the first dimension; renorm adds 1e-7 to a norm."""
    return torch.renorm(gradient, 2, 0, most) if gradient.dim() > 1 else shorten(gradient, most)


WRONG += [said(hooked(renormed), "row by row")]
WRONG += [hooked(lambda gradient, most: gradient * torch.clamp(most / gradient.float().norm(), max=1))]
