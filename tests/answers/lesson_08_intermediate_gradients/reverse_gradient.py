"""Right and wrong answers to `reverse_gradient`."""

import torch

from tests.answers.leaving import gradients_off, leaving
from tests.answers.lesson_08_intermediate_gradients.passing import for_one_dtype, hooked, hooked_on_x, retain
from tests.answers.lesson_08_intermediate_gradients.side_effects import (
    leave_zeros,
    switch_on,
    track,
    write_to,
)
from tests.answers.magnitudes import squeezed
from tests.answers.said import said


class Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.strength * gradient, None


def turn(gradient, strength):
    return -strength * gradient


def reverse_by_arithmetic(x, strength):
    return (1 + strength) * x.detach() - strength * x


def reverse_by_node(x, strength):
    y = x * 1
    if y.grad_fn is not None:
        y.grad_fn.register_prehook(lambda gradients: (-strength * gradients[0],))
    return y


def reverse_in_place(x, strength):
    if x.requires_grad:
        x.register_hook(lambda gradient: gradient.mul_(-strength))
    return x.clone()


def reverse_by_the_last_strength(x, strength):
    """What a hook reads is what the last call left."""
    reverse_by_the_last_strength.strength = strength
    return hooked(lambda gradient, _: -reverse_by_the_last_strength.strength * gradient)(x, strength)


def reverse_beside_the_rest(x, strength):
    turned = -strength * x
    return turned + (x - turned).detach()


RIGHT = [
    *(hooked(turn), lambda x, s: Reversal.apply(x, s), reverse_by_arithmetic, reverse_by_node),
    reverse_beside_the_rest,
]


def reverse_once(x, strength):
    y = x * 1
    if y.requires_grad:

        def hook(gradient):
            handle.remove()
            return -strength * gradient

        handle = y.register_hook(hook)
    return y


MISCONCEIVED = {
    "a hook on x": hooked_on_x(turn),
    "the numbers are negated": lambda x, strength: -strength * x,
    "without the strength": hooked(lambda gradient, strength: -gradient),
    "zero is none": hooked(lambda gradient, strength: -(strength or 1.0) * gradient),
    "the latest strength": reverse_by_the_last_strength,
    "only once": reverse_once,
    "not turned around": hooked(lambda gradient, strength: strength * gradient),
}

reverse_in_what_arrives = hooked(lambda gradient, strength: gradient.mul_(-strength))

ONE_SLIP = {
    "x": leaving(hooked(turn), write_to),
    "requires_grad": leaving(hooked(turn), track),
    "held": leaving(hooked(turn), leave_zeros),
    "retains": leaving(hooked(turn), retain),
    "mode": leaving(hooked(turn), switch_on),
    "graph": lambda x, amount: x.detach().clone(),
}

WRONG = [
    squeezed(hooked(turn)),
    *ONE_SLIP.values(),
    hooked(lambda gradient, strength: -strength * gradient.clamp(-1e3, 1e3)),
    hooked(lambda gradient, strength: -strength * gradient * (gradient.abs() > 1e-6)),
    hooked(lambda gradient, strength: -min(strength, 10.0) * gradient),
    said(reverse_in_place, "a hook on x"),
    reverse_in_what_arrives,
    hooked(lambda gradient, strength: None),
    lambda x, strength: x,
    hooked(lambda gradient, strength: -abs(strength) * gradient),
    lambda x, strength: hooked(turn)(x, strength) if strength else x.clone(),
    lambda x, strength: x.detach() - strength * x,
    lambda x, strength: x.detach().requires_grad_(),
    lambda x, strength: (1 + strength) * x.data - strength * x.data,
    lambda x, strength: [Reversal.apply(x, strength)],
    for_one_dtype(hooked(turn)),
    leaving(hooked(turn), gradients_off),
]

EQUIVALENT = {
    "Reversal.forward: return x.clone() -> return x": "A Function that returns its input gives a tensor of its own all the same.",
    "Reversal.forward: return x.clone() -> return x.detach()": "A Function that returns its input gives a tensor of its own all the same.",
    "reverse_by_node: y = x * 1 -> y = x / 1": "Both give the numbers of x, and their derivative is 1.",
    "reverse_by_node: y.grad_fn is not None -> y.grad_fn": "A node has no truth value of its own: it is always true.",
}

GUARDS = {
    "arrives at `x` multiplied by `-strength`": {
        "value": MISCONCEIVED["not turned around"],
        "graph": ONE_SLIP["graph"],
    },
    "gradients that come from those arrive as they are": {"value": MISCONCEIVED["a hook on x"]},
    "looks whether `x`, or a gradient that belongs to others, was changed": {
        "neighbour": reverse_in_what_arrives,
        "x": ONE_SLIP["x"],
        "requires_grad": ONE_SLIP["requires_grad"],
        "held": ONE_SLIP["held"],
        "retains": ONE_SLIP["retains"],
    },
    "or gradients may be switched off": {"mode": ONE_SLIP["mode"]},
}

WRONG += [hooked(lambda gradient, strength: (-strength * gradient.float()).to(gradient.dtype))]
WRONG += [hooked(lambda gradient, strength: -torch.tensor(strength) * gradient)]
