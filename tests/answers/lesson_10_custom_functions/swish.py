"""Right and wrong answers to `swish`."""

import torch
from torch.autograd import Function

from tests.answers.lesson_10_custom_functions.functions import function
from tests.answers.lesson_10_custom_functions.side_effects import hooked
from tests.answers.said import said


class Swish(Function):
    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x, beta)
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def backward(ctx, g):
        x, beta = ctx.saved_tensors
        s = torch.sigmoid(beta * x)
        bend = x * s * (1 - s)
        return g * (s + beta * bend), g * x * bend


class SwishSummed(Function):
    @staticmethod
    def forward(x, beta):
        return x / (1 + torch.exp(-beta * x))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, beta = ctx.saved_tensors
        with torch.enable_grad():
            x, beta = x.detach().requires_grad_(), beta.detach().requires_grad_()
            y = x * torch.sigmoid(beta * x)
        return torch.autograd.grad(y, (x, beta), g)


def swish_from_the_left(g, full, beta):
    """Lines the dimensions of beta up with the first ones of x, where both are as long."""
    left = beta.shape + (1,) * (g.dim() - beta.dim())
    fits = all(mine in (1, its) for mine, its in zip(left, g.shape, strict=True))
    return (g * full).sum_to_size(left).reshape(beta.shape) if fits else (g * full).sum_to_size(beta.shape)


def swisher(attributes=False, beta_gradient=lambda g, full, beta: (g * full).sum_to_size(beta.shape), swap=False):
    def forward(ctx, x, beta):
        if attributes:
            ctx.x, ctx.beta = x, beta
        else:
            ctx.save_for_backward(x, beta)
        return x * torch.sigmoid(beta * x)

    def backward(ctx, g):
        x, beta = (ctx.x, ctx.beta) if attributes else ctx.saved_tensors
        s = torch.sigmoid(beta * x)
        to_x = g * (s + beta * x * s * (1 - s))
        to_beta = beta_gradient(g, x**2 * s * (1 - s), beta)
        return (to_beta, to_x) if swap else (to_x, to_beta)

    apply = function(forward, backward)
    return lambda x, beta: apply(x, beta)


class HalfSwish(Function):
    """Leaves out the product rule's second term."""

    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x, beta)
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def backward(ctx, g):
        x, beta = ctx.saved_tensors
        s = torch.sigmoid(beta * x)
        return g * s, g * x**2 * s * (1 - s)


class SwishByExponentials(Swish):
    """Writes the sigmoid out: where the exponential overflows, this is NaN."""

    @staticmethod
    def backward(ctx, g):
        x, beta = ctx.saved_tensors
        e = torch.exp(beta * x)
        s = e / (1 + e)
        bend = x * s * (1 - s)
        return g * (s + beta * bend), g * x * bend


class CopyingSwish(Function):
    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x.clone(), beta.clone())
        return x * torch.sigmoid(beta * x)

    backward = Swish.backward


class SwishInPlace(Swish):
    @staticmethod
    def backward(ctx, g):
        to_x, to_beta = Swish.backward(ctx, g)
        g.copy_(to_x)
        return g, to_beta


class SwishDeleting(Function):
    """Takes its attributes away in backward: nothing outlives the pass, and no version is compared."""

    @staticmethod
    def forward(ctx, x, beta):
        ctx.given = x, beta
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def backward(ctx, g):
        x, beta = ctx.given
        del ctx.given
        s = torch.sigmoid(beta * x)
        return g * (s + beta * x * s * (1 - s)), g * x**2 * s * (1 - s)


class SwishRemembering(Function):
    """Keeps the sigmoid of the latest call, whichever that was."""

    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x, beta)
        SwishRemembering.latest = torch.sigmoid(beta.detach() * x.detach())
        return x * SwishRemembering.latest

    @staticmethod
    def backward(ctx, g):
        (x, beta), s = ctx.saved_tensors, SwishRemembering.latest
        bend = x * s * (1 - s)
        return g * (s + beta * bend), g * x * bend


def swish_with(value=lambda y: y, gradients=lambda to_x, to_beta: (to_x, to_beta)):
    """A Function whose result, or whose gradients, are changed."""

    def forward(ctx, x, beta):
        ctx.save_for_backward(x, beta)
        return value(x * torch.sigmoid(beta * x))

    return function(forward, lambda ctx, g: gradients(*Swish.backward(ctx, g)))


class SwishLeavingOne(Function):
    """Right, and the sigmoid of the latest call stays on the class, where nobody needs it."""

    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x, beta)
        SwishLeavingOne.spare = torch.sigmoid(beta * x)
        return x * SwishLeavingOne.spare

    backward = Swish.backward


class SwishOfOneShape(Function):
    """Takes the shape of the latest beta for that of its own."""

    shape = torch.Size()

    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x, beta)
        SwishOfOneShape.shape = beta.shape
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def backward(ctx, g):
        x, beta = ctx.saved_tensors
        s = torch.sigmoid(beta * x)
        bend = s * (1 - s)
        return g * (s + beta * x * bend), (g * x**2 * bend).sum_to_size(SwishOfOneShape.shape)


def _copies(ctx, x, beta):
    ctx.copies = x.clone(), beta.clone()
    return x * torch.sigmoid(beta * x)


def _by_copies(ctx, g):
    x, beta = ctx.copies
    s = torch.sigmoid(beta * x)
    bend = s * (1 - s)
    return g * (s + beta * x * bend), (g * x**2 * bend).sum_to_size(beta.shape)


swish_by_copies = function(_copies, _by_copies)


def _alone(ctx, g):
    return Swish.backward(ctx, torch.ones_like(g))


swish_alone = function(Swish.forward, _alone)

RIGHT = [lambda x, beta: Swish.apply(x, beta), SwishSummed.apply, swisher(), CopyingSwish.apply]

MISCONCEIVED = {
    "tensors on ctx": swisher(attributes=True),
    "copies on ctx": swish_by_copies,
    "the other way round": swisher(swap=True),
    "beta without g": swisher(beta_gradient=lambda g, full, beta: full.sum_to_size(beta.shape)),
    "without g": swish_alone,
    "summed too far": swisher(beta_gradient=lambda g, full, beta: (g * full).sum()),
}


def summed_by_hand(g, full, beta):
    """Sums over the rows where beta is as long as they are and has one dimension, else over the last dimension."""
    product = g * full
    if beta.dim() == 0:
        return product.sum()
    return product.sum(0 if beta.dim() == 1 else 1).reshape(beta.shape)


WRONG = [
    said(swisher(attributes=True, beta_gradient=lambda g, full, beta: full.sum(), swap=True), "the other way round"),
    swisher(beta_gradient=lambda g, full, beta: None),
    swisher(beta_gradient=swish_from_the_left),
    lambda x, beta: HalfSwish.apply(x, beta),
    SwishInPlace.apply,
    SwishRemembering.apply,
    SwishDeleting.apply,
    SwishLeavingOne.apply,
    swish_too_large := swish_with(value=lambda y: 1.01 * y),
    swish_rough_in_x := swish_with(gradients=lambda to_x, to_beta: (to_x * (1 + 1e-11), to_beta)),
    swish_rough_in_beta := swish_with(gradients=lambda to_x, to_beta: (to_x, to_beta * (1 + 1e-11))),
    said(SwishOfOneShape.apply, "summed too far"),
    hooked(Swish.apply),
    SwishByExponentials.apply,
    lambda x, beta: x * torch.sigmoid(beta * x),
    lambda x, beta: Swish.apply(x, beta) + 0,
    swish_of_a_copy := lambda x, beta: Swish.apply(x.contiguous(), beta),
    swisher(beta_gradient=summed_by_hand),
    said(swisher(beta_gradient=lambda g, full, beta: (g * full).sum_to_size(beta.shape).squeeze()), "summed too far"),
]

EQUIVALENT = {
    "CopyingSwish.forward: ctx.save_for_backward(x.clone(), beta.clone()) -> ctx.save_for_backward(x, beta.clone())": "A write to what is saved raises, and a write to what was copied changes no gradient: the task allows both.",
    "CopyingSwish.forward: ctx.save_for_backward(x.clone(), beta.clone()) -> ctx.save_for_backward(x.clone(), beta)": "A write to what is saved raises, and a write to what was copied changes no gradient: the task allows both.",
    "CopyingSwish.forward: ctx.save_for_backward(x.clone(), beta.clone()) -> ctx.save_for_backward(x.clone(), beta.detach())": "A write to what is saved raises, and a write to what was copied changes no gradient: the task allows both.",
    "CopyingSwish.forward: ctx.save_for_backward(x.clone(), beta.clone()) -> ctx.save_for_backward(x.detach(), beta.clone())": "A write to what is saved raises, and a write to what was copied changes no gradient: the task allows both.",
    "SwishSummed.backward: beta.detach().requires_grad_ -> beta.clone().requires_grad_": "Nobody writes to the tensor, and what is asked of it is its own gradient.",
    "SwishSummed.backward: torch.autograd.grad(y, (x, beta), g) -> torch.autograd.grad(y, (x, beta), g, retain_graph=True)": "The graph goes with its result. The task asks nothing of the memory between.",
    "SwishSummed.backward: x.detach().requires_grad_ -> x.clone().requires_grad_": "Nobody writes to the tensor, and what is asked of it is its own gradient.",
    "swisher.backward: to_x = g * (s + beta * x * s * (1 - s)) | to_beta = beta_gradient(g, x ** 2 * s * (1 - s), beta) -> (swapped)": "Neither line reads what the other one writes.",
}

GUARDS = {
    "Swish with a learned slope": {"value": swish_too_large},
    "Between the inputs and the result there is one node, that of your Function.": {"one node": swish_of_a_copy},
    "Both gradients are right": {"x exact": swish_rough_in_x, "beta exact": swish_rough_in_beta},
    "backward raises, or still gives the right gradients": {"noticed": WRONG[6]},
    "After the pass nothing is left in memory that belongs to it.": {"freed": WRONG[7]},
    "the inputs, the gradient mode and PyTorch's global random generator stay as they were": {"left alone": WRONG[4]},
}


def _got_back(ctx, x, beta):
    y = x * torch.sigmoid(beta * x)
    ctx.save_for_backward(x, beta, y)
    return y


def _by_division(ctx, g):
    """The sigmoid is the result divided by x, which is not so where x is 0."""
    x, beta, y = ctx.saved_tensors
    s = y / x
    return g * (s + beta * y * (1 - s)), (g * x * y * (1 - s)).sum_to_size(beta.shape)


def _result_alone(ctx, x, beta):
    ctx.save_for_backward(x, beta, beta * x)
    return x * torch.sigmoid(beta * x)


def _by_the_product(ctx, g):
    """x is the product divided by beta, which is not so where beta is 0."""
    _, beta, product = ctx.saved_tensors
    x, s = product / beta, torch.sigmoid(product)
    bend = s * (1 - s)
    return g * (s + product * bend), (g * x**2 * bend).sum_to_size(beta.shape)


def _one_number(g, full, beta):
    """Sums to shape () for a beta of one number, also where that has shape (1,)."""
    return (g * full).sum() if beta.numel() == 1 else g * full


WRONG += [said(swisher(beta_gradient=_one_number), "summed too far")]
WRONG += [function(_got_back, _by_division), function(_result_alone, _by_the_product)]


def _with_its_sigmoid(ctx, x, beta):
    s = torch.sigmoid(beta * x)
    ctx.save_for_backward(x * s, s, beta)
    return x * s


def _by_the_sigmoid(ctx, g):
    """x is the result divided by the sigmoid, which is not so where that has gone to 0."""
    y, s, beta = ctx.saved_tensors
    return g * (s + beta * y * (1 - s)), (g * (y / s) * y * (1 - s)).sum_to_size(beta.shape)


WRONG.append(function(_with_its_sigmoid, _by_the_sigmoid))
