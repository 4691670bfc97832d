"""Right and wrong answers to `clamp_inward`."""

import torch
from torch.autograd import Function

from tests.answers.lesson_10_custom_functions.functions import function
from tests.answers.said import said


class ClampInward(Function):
    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x)
        ctx.low, ctx.high = low, high
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        outward = ((x < ctx.low) & (g > 0)) | ((x > ctx.high) & (g < 0))
        return g.masked_fill(outward, 0), None, None


def clamp_inward(x, low, high):
    return ClampInward.apply(x, low, high)


usual = clamp_inward  # the grader's cell binds the exercise's name to the answer that it tries


class ClampBySide(Function):
    @staticmethod
    def forward(x, low, high):
        return torch.minimum(torch.maximum(x, torch.tensor(low, dtype=x.dtype)), torch.tensor(high, dtype=x.dtype))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward((inputs[0] - output).sign().to(torch.int8))

    @staticmethod
    def backward(ctx, g):
        (side,) = ctx.saved_tensors
        return torch.where(side * g < 0, torch.zeros_like(g), g), None, None


def clamper(passes, nones=2):
    """A clamp whose gradient passes where passes(x, g, low, high) says so."""

    def forward(ctx, x, low, high):
        ctx.save_for_backward(x)
        ctx.range = low, high
        return x.clamp(low, high)

    def backward(ctx, g):
        return g * passes(ctx.saved_tensors[0], g, *ctx.range), *[None] * nones

    apply = function(forward, backward)
    return lambda x, low, high: apply(x, low, high)


def inward(x, g, low, high):
    return ((x >= low) & (x <= high)) | ((x < low) & (g < 0)) | ((x > high) & (g > 0))


class ClampInPlace(ClampInward):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        g[((x < ctx.low) & (g > 0)) | ((x > ctx.high) & (g < 0))] = 0
        return g, None, None


class ClampInSingle(ClampInward):
    @staticmethod
    def backward(ctx, g):
        gradient, *rest = ClampInward.backward(ctx, g.float())
        return gradient.to(g.dtype), *rest


class ClampNearly(ClampInward):
    @staticmethod
    def backward(ctx, g):
        gradient, *rest = ClampInward.backward(ctx, g)
        return gradient * (1 + 1e-11), *rest


class ClampOnCtx(Function):
    @staticmethod
    def forward(ctx, x, low, high):
        ctx.x, ctx.range = x, (low, high)
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx, g):
        return g * inward(ctx.x, g, *ctx.range), None, None


class ClampOnTheClass(Function):
    """Keeps its bounds where a later call overwrites them."""

    @staticmethod
    def forward(ctx, x, low, high):
        ClampOnTheClass.range = low, high
        ctx.save_for_backward(x)
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx, g):
        return g * inward(ctx.saved_tensors[0], g, *ClampOnTheClass.range), None, None


def clamp_writing_to_x(x, low, high):
    x.data.clamp_(low, high)
    return usual(x, low, high)


def nearer(x, g, low, high):
    """Where a whole step would end nearer to the range: one that goes far beyond it does not."""

    def away(t):
        return (low - t).clamp(min=0) + (t - high).clamp(min=0)

    return ((x >= low) & (x <= high)) | (away(x - g) < away(x))


def moved(x, g, low, high):
    """Where a step moves the number, as far as rounding lets it."""
    return ((x >= low) & (x <= high)) | ((x < low) & (x - g > x)) | ((x > high) & (x - g < x))


def by_product(x, g, low, high):
    return (x - x.clamp(low, high)) * g >= 0


class ClampWithZerosOfX(ClampInward):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.where(inward(x, g, ctx.low, ctx.high), g, x * 0), None, None


RIGHT = [clamp_inward, ClampBySide.apply, clamper(inward)]

MISCONCEIVED = {
    "everything passes": clamper(lambda x, g, low, high: torch.ones_like(x)),
    "the clamp's own gradient": clamper(lambda x, g, low, high: (x >= low) & (x <= high)),
    "outward": clamper(
        lambda x, g, low, high: ((x >= low) & (x <= high)) | ((x < low) & (g > 0)) | ((x > high) & (g < 0))
    ),
}

WRONG = [
    said(lambda x, low, high: x.clamp(low, high), "the clamp's own gradient"),
    said(lambda x, low, high: x + (x.clamp(low, high) - x).detach(), "everything passes"),
    clamper(inward, nones=1),
    lambda x, low, high: ClampInward.apply(x, -1.3, 2.6),
    *(clamper(nearer), clamper(moved), clamp_by_product := clamper(by_product), ClampWithZerosOfX.apply),
    clamper(lambda x, g, low, high: ((x > low) & (x < high)) | inward(x, g, low + 1e-9, high - 1e-9)),
    clamper(lambda x, g, low, high: inward(x, g, low, high) * 1.5),
    lambda x, low, high: x.detach().clamp(low, high).requires_grad_(),
    ClampInPlace.apply,
    clamp_in_single := ClampInSingle.apply,
    ClampOnCtx.apply,
    ClampOnTheClass.apply,
    clamp_writing_to_x,
    clamp_of_a_copy := lambda x, low, high: ClampInward.apply(x + 0, low, high),
    clamp_nearly := ClampNearly.apply,
]

EQUIVALENT = {
    "ClampBySide.backward: torch.where(side * g < 0, torch.zeros_like(g), g) -> torch.where(side / g < 0, torch.zeros_like(g), g)": "A gradient of zero passes as zero, or is stopped to zero.",
    "ClampBySide.setup_context: (inputs[0] - output).sign().to(torch.int8) -> (inputs[0] - output).sign()": "Only the sign is read.",
    "ClampInward.backward: (x < ctx.low) & (g > 0) -> (x < ctx.low) & (g >= 0)": "A gradient of zero passes as zero, or is stopped to zero.",
    "ClampInward.backward: (x > ctx.high) & (g < 0) -> (x > ctx.high) & (g <= 0)": "A gradient of zero passes as zero, or is stopped to zero.",
    "ClampInward.forward: ctx.save_for_backward(x) | ctx.low, ctx.high = (low, high) -> (swapped)": "Neither line reads what the other one writes.",
    "clamper.forward: ctx.save_for_backward(x) | ctx.range = (low, high) -> (swapped)": "Neither line reads what the other one writes.",
    "clamper: def clamper(passes, nones=2): ... -> def clamper(passes, nones=3): ...": "PyTorch ignores a None at the end, beyond the inputs.",
    "inward: (x < low) & (g < 0) -> (x < low) & (g <= 0)": "A gradient of zero passes as zero, or is stopped to zero.",
    "inward: (x < low) & (g < 0) -> (x <= low) & (g < 0)": "A number on a bound lies inside, where everything passes.",
    "inward: (x > high) & (g > 0) -> (x > high) & (g >= 0)": "A gradient of zero passes as zero, or is stopped to zero.",
    "inward: (x > high) & (g > 0) -> (x >= high) & (g > 0)": "A number on a bound lies inside, where everything passes.",
}

GUARDS = {
    "Between the inputs and the result there is one node, that of your Function.": {"one node": clamp_of_a_copy},
    "What forward needs to remember of tensors goes through `save_for_backward`, not onto `ctx`.": {
        "attribute": WRONG[13]
    },
    "the inputs, the gradient mode and PyTorch's global random generator stay as they were": {"left alone": WRONG[11]},
    "Outside it passes only where a step of gradient descent, which subtracts the gradient, would move the number": {
        "value": MISCONCEIVED["outward"],
    },
    "Its gradient passes unchanged where `x` is inside the range": {
        "exact": clamp_nearly,
        "unchanged": clamp_by_product,
    },
}


def by_a_quotient(ctx, g):
    """Takes g / |g| for the sign: NaN where nothing comes in."""
    (x,) = ctx.saved_tensors
    side = (x > ctx.high).to(g.dtype) - (x < ctx.low).to(g.dtype)
    return g * torch.where(side == 0, 1.0, (1 + side * g / g.abs()) / 2), None, None


WRONG += [function(ClampInward.forward, by_a_quotient)]
