"""Right and wrong answers to `log_cosh`."""

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from tests.answers.said import said


class LogCosh(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.cosh().log()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.tanh()


class Tanh(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (1 - y * y)


class LogCoshNested(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.abs() + torch.log1p(torch.exp(-2 * x.abs())) - 0.6931471805599453

    @staticmethod
    def backward(ctx, g):
        return Tanh.apply(ctx.saved_tensors[0]) * g


class LogCoshTwoOutputs(Function):
    """Gives the intermediate away as an output, as PyTorch's tutorial does."""

    @staticmethod
    def forward(ctx, x):
        slope = x.tanh()
        ctx.save_for_backward(slope)
        return x.cosh().log(), slope

    @staticmethod
    def backward(ctx, g, g_slope):
        (slope,) = ctx.saved_tensors
        return g * slope + g_slope * (1 - slope**2)


class LogCoshIntermediate(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.tanh())
        return x.cosh().log()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class TanhIntermediate(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(1 - x.tanh() ** 2)
        return x.tanh()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class LogCoshOneStep(LogCosh):
    @staticmethod
    def backward(ctx, g):
        return g * TanhIntermediate.apply(ctx.saved_tensors[0])


class LogCoshOnce(LogCosh):
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].tanh()


class LogCoshByDifferences(LogCosh):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ((x + 1e-6).cosh().log() - (x - 1e-6).cosh().log()) / 2e-6


class LogCoshOfACopy(LogCosh):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.clone())
        return x.cosh().log()


class LogCoshOnCtx(LogCosh):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x.cosh().log()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.x.tanh()


class LogCoshInPlace(LogCosh):
    @staticmethod
    def backward(ctx, g):
        slope = ctx.saved_tensors[0].tanh()
        return g * slope if torch.is_grad_enabled() else g.mul_(slope)


class LogCoshTooLarge(LogCosh):
    @staticmethod
    def forward(ctx, x):
        return LogCosh.forward(ctx, x) + 1


class LogCoshTilted(LogCosh):
    """The slope is off by a constant, which no further derivative shows."""

    @staticmethod
    def backward(ctx, g):
        return LogCosh.backward(ctx, g) + 0.01 * g


def log_cosh_recording_off(x):
    y = LogCosh.apply(x)
    torch.set_grad_enabled(False)
    return y


class LogCoshOfAClass(Function):
    """Keeps its input where the next call puts its own."""

    @staticmethod
    def forward(ctx, x):
        LogCoshOfAClass.latest = x
        return x.cosh().log()

    @staticmethod
    def backward(ctx, g):
        return g * LogCoshOfAClass.latest.tanh()


class LogCoshShort(LogCosh):
    """Cuts long gradients off."""

    @staticmethod
    def backward(ctx, g):
        return LogCosh.backward(ctx, g.clamp(-1e3, 1e3))


class LogCoshIncomingCut(LogCosh):
    @staticmethod
    def backward(ctx, g):
        return g.detach() * ctx.saved_tensors[0].tanh()


class LogCoshBySize(LogCosh):
    """The size of x has no slope at zero."""

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.sign() * (1 - 2 / (1 + (2 * x.abs()).exp()))


class LogCoshOverX(LogCosh):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x * (x.tanh() / x)


RIGHT = [lambda x: LogCosh.apply(x), LogCoshNested.apply, lambda x: LogCoshTwoOutputs.apply(x)[0]]


class LogCoshAlone(LogCosh):
    @staticmethod
    def backward(ctx, g):
        return ctx.saved_tensors[0].tanh()


MISCONCEIVED = {
    "the derivative alone": lambda x: LogCoshAlone.apply(x),
    "an intermediate is saved": lambda x: LogCoshIntermediate.apply(x),
    "only one step farther": lambda x: LogCoshOneStep.apply(x),
}

WRONG = [
    lambda x: x.cosh().log(),
    said(lambda x: LogCoshOnce.apply(x), "an intermediate is saved"),
    lambda x: LogCosh.apply(x) + 0,
    lambda x: Tanh.apply(x),
    lambda x: LogCosh.apply(x.detach()),
    lambda x: LogCoshByDifferences.apply(x),
    said(lambda x: LogCoshOfACopy.apply(x), "an intermediate is saved"),
    LogCoshOnCtx.apply,
    LogCoshInPlace.apply,
    log_cosh_too_large := lambda x: LogCoshTooLarge.apply(x),
    log_cosh_tilted := lambda x: LogCoshTilted.apply(x),
    log_cosh_recording_off,
    lambda x: LogCoshOfAClass.apply(x),
    cut_above := lambda x: LogCoshIncomingCut.apply(x),
    lambda x: LogCoshBySize.apply(x),
    lambda x: LogCoshOverX.apply(x),
    lambda x: LogCoshShort.apply(x),
    lambda x: LogCosh.apply(x.contiguous()),
]

GUARDS = {
    "Between the inputs and the result there is one node, that of your Function.": {
        "one node": WRONG[2],
        "graph": WRONG[4],
    },
    "What forward needs to remember of tensors goes through `save_for_backward`, not onto `ctx`.": {
        "attribute": WRONG[7]
    },
    "the inputs, the gradient mode and PyTorch's global random generator stay as they were": {
        "left alone": log_cosh_recording_off
    },
    "Write `log_cosh(x)`": {"value": log_cosh_too_large},
    "whose first, second and third derivative are right": {
        "first derivative": log_cosh_tilted,
        "second derivative": MISCONCEIVED["an intermediate is saved"],
        "third derivative": MISCONCEIVED["only one step farther"],
        "behind another": cut_above,
    },
}
