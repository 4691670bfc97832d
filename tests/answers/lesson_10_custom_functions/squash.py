"""Right and wrong answers to `squash`."""

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from tests.answers.lesson_10_custom_functions.functions import function
from tests.answers.lesson_10_custom_functions.side_effects import gradients_off_after, hooked, recording_after
from tests.answers.said import said


class Squash(Function):
    @staticmethod
    def forward(ctx, x):
        y = x / (1 + x**2).sqrt()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (1 - y**2) ** 1.5


def squash(x):
    return Squash.apply(x)


usual = squash  # the grader's cell binds the exercise's name to the answer that it tries


class SquashInTwo(Function):
    @staticmethod
    def forward(x):
        return torch.sin(torch.atan(x))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        root = torch.sqrt(1 - ctx.saved_tensors[0].square())
        return root * root * root * g


def squasher(save, slope, value=lambda x: x / (1 + x**2).sqrt()):
    def forward(ctx, x):
        y = value(x)
        save(ctx, x, y)
        return y

    apply = function(forward, slope)
    return lambda x: apply(x)


def save_x(ctx, x, y):
    ctx.save_for_backward(x)


def save_y(ctx, x, y):
    ctx.save_for_backward(y)


def save_copy(ctx, x, y):
    ctx.save_for_backward(y.clone())


def save_slope(ctx, x, y):
    ctx.save_for_backward((1 - y**2) ** 1.5)


def hang_y(ctx, x, y):
    ctx.y = y


def from_x(ctx, g):
    return g * (1 + ctx.saved_tensors[0] ** 2) ** -1.5


def from_y(ctx, g):
    return g * (1 - ctx.saved_tensors[0] ** 2) ** 1.5


def nothing(ctx, g):
    from_y(ctx, g)


def from_y_in_place(ctx, g):
    return g.mul_((1 - ctx.saved_tensors[0] ** 2) ** 1.5)


def from_y_in_place_at_first(ctx, g):
    return from_y(ctx, g) if torch.is_grad_enabled() else from_y_in_place(ctx, g)


class SquashOfTheLast(Function):
    """Its backward uses the result of the last call."""

    @staticmethod
    def forward(ctx, x):
        SquashOfTheLast.result = x / (1 + x * x).sqrt()
        ctx.save_for_backward(SquashOfTheLast.result)
        return SquashOfTheLast.result

    @staticmethod
    def backward(ctx, g):
        return g * (1 - SquashOfTheLast.result**2) ** 1.5


RIGHT = [squash, SquashInTwo.apply]


def write_x(ctx, x):
    y = x.data.div_(torch.sqrt(1 + x * x)).clone()
    ctx.save_for_backward(y)
    return y


def write_nothing_new(ctx, x, y):
    x.detach().mul_(1)
    save_y(ctx, x, y)


MISCONCEIVED = {
    "the input is kept": squasher(save_x, from_x),
    "hung on ctx": squasher(hang_y, lambda ctx, g: g * (1 - ctx.y**2) ** 1.5),
    "the derivative alone": squasher(save_y, lambda ctx, g: (1 - ctx.saved_tensors[0] ** 2) ** 1.5),
    "no return": squasher(save_y, nothing),
}

WRONG = [
    lambda x: x / (1 + x**2).sqrt(),
    said(squasher(save_copy, from_y), "the input is kept"),
    said(squasher(save_slope, lambda ctx, g: g * ctx.saved_tensors[0]), "the input is kept"),
    squasher(save_y, lambda ctx, g: g * (1 - ctx.saved_tensors[0] ** 2)),
    squasher(save_y, once_differentiable(from_y)),
    lambda x: checkpoint(lambda t: t / (1 + t**2).sqrt(), x, use_reentrant=True),
    lambda x: checkpoint(lambda t: t / (1 + t**2).sqrt(), x, use_reentrant=False),
    lambda x: usual(x) * 1,
    lambda x: usual(x.detach().requires_grad_()),
    lambda x: (usual(x),),
    squasher(save_y, from_y_in_place),
    squasher(save_y, from_y_in_place_at_first),
    gradients_off_after(squash),
    hooked(squash),
    recording_after(squash),
    lambda x: usual(x.requires_grad_()),
    squash_of_a_copy := lambda x: usual(x + 0),
    SquashOfTheLast.apply,
    squash_cut := lambda x: usual(x).detach(),
    lambda x: function(write_x, from_y)(x),
    squasher(save_y, lambda ctx, g: from_y(ctx, g.clamp(-1e3, 1e3))),
    squasher(save_y, lambda ctx, g: from_y(ctx, g * (g.abs() > 1e-6))),
    squash_writing_nothing_new := squasher(write_nothing_new, from_y),
    squash_of_a_constant := squasher(save_y, lambda ctx, g: from_y(ctx, g.detach())),
]

GUARDS = {
    "and the second derivative as well": {"incoming": squash_of_a_constant},
    "Between the inputs and the result there is one node, that of your Function.": {
        "one node": squash_of_a_copy,
        "graph": squash_cut,
    },
    "What forward needs to remember of tensors goes through `save_for_backward`, not onto `ctx`.": {
        "attribute": MISCONCEIVED["hung on ctx"]
    },
    "the inputs, the gradient mode and PyTorch's global random generator stay as they were": {"left alone": WRONG[15]},
    "It keeps only its result for backward.": {"kept": MISCONCEIVED["the input is kept"]},
    "Value and gradient are right, and the second derivative as well.": {"value": WRONG[3]},
}


def by_the_quotient(ctx, g):
    """The derivative is (y / x) ** 3, and 0 / 0 where x is 0."""
    (y,) = ctx.saved_tensors
    return g * (y / (y / (1 - y * y).sqrt())) ** 3


def by_what_remains_of_g(ctx, g):
    """NaN where nothing comes in."""
    (y,) = ctx.saved_tensors
    return g * (g * (1 - y**2) / g) ** 1.5


WRONG += [function(Squash.forward, backward) for backward in (by_the_quotient, by_what_remains_of_g)]
