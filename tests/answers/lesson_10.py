"""Answers to the exercises of lesson 10."""

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

PREDICTED = {
    "as_it_should": "right",
    "no_return": "nothing",
    "g_left_out": "wrong",
    "summed": "raises",
    "in_a_list": "raises",
    "one_too_few": "raises",
    "none_too_many": "right",
    "not_summed": "right",
    "saved_then_written": "raises",
    "on_ctx_then_written": "wrong",
}


def function(forward, backward):
    """Return the apply of a Function with this forward and backward."""
    kinds = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Made", (Function,), kinds).apply


# squash


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


def gradients_off_after(answer):
    """An answer that leaves gradient mode off."""

    def run(*args):
        result = answer(*args)
        torch.set_grad_enabled(False)
        return result

    return run


def hooked(answer):
    """An answer that leaves a hook on its input."""

    def run(x, *args):
        if x.requires_grad:
            x.register_hook(lambda g: g)
        return answer(x, *args)

    return run


# clamp_inward


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


class ClampBySide(Function):
    @staticmethod
    def forward(x, low, high):
        return torch.minimum(torch.maximum(x, torch.tensor(low).to(x)), torch.tensor(high).to(x))

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
    return clamp_inward(x, low, high)


# swish


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
        to_x = to_beta = None
        with torch.enable_grad():
            x, beta = x.detach().requires_grad_(), beta.detach().requires_grad_()
            y = x * torch.sigmoid(beta * x)
        to_x, to_beta = torch.autograd.grad(y, (x, beta), g)
        return to_x, to_beta if ctx.needs_input_grad[1] else None


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


# agrees


def agrees(function, x):
    leaf = x.clone().requires_grad_()
    result = function(leaf)
    by_backward, by_difference = [], []
    for place in range(result.numel()):
        seed = torch.zeros(result.numel(), dtype=x.dtype)
        seed[place] = 1
        (row,) = torch.autograd.grad(result, leaf, seed.reshape(result.shape), retain_graph=True, allow_unused=True)
        by_backward.append(torch.zeros(x.numel(), dtype=x.dtype) if row is None else row.reshape(-1))
    for place in range(x.numel()):
        step = torch.zeros(x.numel(), dtype=x.dtype)
        step[place] = 1e-6
        step = step.reshape(x.shape)
        by_difference.append(((function(x + step) - function(x - step)) / 2e-6).reshape(-1))
    return torch.allclose(torch.stack(by_backward), torch.stack(by_difference, 1), rtol=1e-5, atol=1e-6)


def agrees_on_random_lines(function, x, step=1e-5):
    generator = torch.Generator().manual_seed(0)
    for _ in range(8):
        line = torch.randn(x.shape, dtype=x.dtype, generator=generator)
        slope = (function(x + step * line) - function(x - step * line)) / (2 * step)
        leaf = x.clone().requires_grad_()
        result = function(leaf)
        g = torch.randn(result.shape, dtype=x.dtype, generator=generator)
        result.backward(g)
        if leaf.grad is None or abs((leaf.grad * line).sum() - (g * slope).sum()) > 1e-6 * (1 + slope.abs().max()):
            return False
    return torch.tensor(True)


def gradient_of_sum(function, x):
    leaf = x.clone().requires_grad_()
    function(leaf).sum().backward()
    return torch.zeros_like(x) if leaf.grad is None else leaf.grad


def agrees_on_the_sum(function, x, step=1e-6):
    gradient = gradient_of_sum(function, x)
    for place in range(x.numel()):
        move = torch.zeros(x.numel(), dtype=x.dtype)
        move[place] = step
        move = move.reshape(x.shape)
        slope = (function(x + move).sum() - function(x - move).sum()) / (2 * step)
        if abs(slope - gradient.reshape(-1)[place]) > 1e-5 * (1 + abs(slope)):
            return False
    return True


def agrees_all_at_once(function, x):
    """Moves all numbers of x together, with random incoming gradients."""
    generator = torch.Generator().manual_seed(0)
    slope = (function(x + 1e-6) - function(x - 1e-6)) / 2e-6
    for _ in range(4):
        leaf = x.clone().requires_grad_()
        result = function(leaf)
        g = torch.randn(result.shape, dtype=x.dtype, generator=generator)
        (gradient,) = torch.autograd.grad(result, leaf, g, allow_unused=True)
        total = 0.0 if gradient is None else gradient.sum()
        if abs(total - (g * slope).sum()) > 1e-5 * (1 + slope.abs().max()):
            return False
    return True


def agrees_coarsely(step=1e-6, one_sided=False, rtol=1e-5, atol=1e-6):
    def verify(function, x):
        leaf = x.clone().requires_grad_()
        result = function(leaf)
        rows = []
        for place in range(result.numel()):
            seed = torch.zeros(result.numel(), dtype=x.dtype)
            seed[place] = 1
            seed = seed.reshape(result.shape)
            (row,) = torch.autograd.grad(result, leaf, seed, retain_graph=True, allow_unused=True)
            rows.append(torch.zeros(x.numel(), dtype=x.dtype) if row is None else row.reshape(-1))
        columns = []
        for place in range(x.numel()):
            move = torch.zeros(x.numel(), dtype=x.dtype)
            move[place] = step
            move = move.reshape(x.shape)
            before = function(x) if one_sided else function(x - move)
            columns.append(((function(x + move) - before) / (step if one_sided else 2 * step)).reshape(-1))
        return torch.allclose(torch.stack(rows), torch.stack(columns, 1), rtol=rtol, atol=atol)

    return verify


def agrees_by_library(function, x):
    return torch.autograd.gradcheck(function, x.clone().requires_grad_(), raise_exception=False)


def agrees_and_leaves_a_gradient(function, x):
    said = agrees(function, x)
    x.requires_grad_()
    return said


# log_cosh


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


# thrifty_linear


class Linear(Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        x_needed, weight_needed, _ = ctx.needs_input_grad
        ctx.save_for_backward(x if weight_needed else None, weight if x_needed else None)
        return nn.functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        rows = g.flatten(0, -2)
        to_x = g @ weight if ctx.needs_input_grad[0] else None
        to_weight = rows.T @ x.flatten(0, -2) if ctx.needs_input_grad[1] else None
        to_bias = rows.sum(0) if ctx.needs_input_grad[2] else None
        return to_x, to_weight, to_bias


def thrifty_linear(x, weight, bias):
    return Linear.apply(x, weight, bias)


class LinearInTwo(Function):
    @staticmethod
    def forward(x, weight, bias):
        y = torch.einsum("...i,oi->...o", x, weight)
        return y if bias is None else y + bias

    @staticmethod
    def setup_context(ctx, inputs, output):
        tensors = {}
        if ctx.needs_input_grad[0]:
            tensors["weight"] = inputs[1]
        if ctx.needs_input_grad[1]:
            tensors["x"] = inputs[0]
        ctx.names = list(tensors)
        ctx.save_for_backward(*tensors.values())

    @staticmethod
    def backward(ctx, g):
        kept = dict(zip(ctx.names, ctx.saved_tensors, strict=True))
        result = [None, None, None]
        if "weight" in kept:
            result[0] = torch.einsum("...o,oi->...i", g, kept["weight"])
        if "x" in kept:
            result[1] = torch.einsum("...o,...i->oi", g, kept["x"])
        if ctx.needs_input_grad[2]:
            result[2] = g
        return tuple(result)


def linear(save="wanted", compute="wanted"):
    def forward(ctx, x, weight, bias):
        needed = (ctx.needs_input_grad[1], ctx.needs_input_grad[0])
        kept = [t if save == "all" or need else None for t, need in zip((x, weight), needed, strict=True)]
        if save == "attributes":
            ctx.kept = kept
        else:
            ctx.save_for_backward(*kept)
        return nn.functional.linear(x, weight, bias)

    def backward(ctx, g):
        x, weight = ctx.kept if save == "attributes" else ctx.saved_tensors
        rows, needs = g.flatten(0, -2), ctx.needs_input_grad
        if compute == "all":
            anything = rows @ rows.new_ones(3, 5), rows.T @ rows.new_ones(len(rows), 5)
        to_x = g @ weight if needs[0] else (anything[0].reshape(*g.shape[:-1], 5) if compute == "all" else None)
        to_weight = rows.T @ x.flatten(0, -2) if needs[1] else None
        return to_x, to_weight, rows.sum(0) if needs[2] else None

    apply = function(forward, backward)
    return lambda x, weight, bias: apply(x, weight, bias)


class WholeLinear(Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return nn.functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        rows = g.flatten(0, -2)
        return g @ weight, rows.T @ x.flatten(0, -2), rows.sum(0) if ctx.needs_input_grad[2] else None


class CopyingLinear(Linear):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x.clone(), weight.clone())
        return nn.functional.linear(x, weight, bias)


class SparinglyCopyingLinear(Linear):
    @staticmethod
    def forward(ctx, x, weight, bias):
        x_needed, weight_needed, _ = ctx.needs_input_grad
        ctx.save_for_backward(x.clone() if weight_needed else None, weight.clone() if x_needed else None)
        return nn.functional.linear(x, weight, bias)


class LinearClearing(Linear):
    """Keeps its factors on ctx and takes them away in backward: no version is compared."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        x_needed, weight_needed, _ = ctx.needs_input_grad
        ctx.kept = x if weight_needed else None, weight if x_needed else None
        return nn.functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.kept
        ctx.kept = None
        rows = g.flatten(0, -2)
        to_x = g @ weight if ctx.needs_input_grad[0] else None
        to_weight = rows.T @ x.flatten(0, -2) if ctx.needs_input_grad[1] else None
        return to_x, to_weight, rows.sum(0) if ctx.needs_input_grad[2] else None


class LinearByElements(Linear):
    """Does without matrix products, and makes far larger tensors."""

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        rows = g.flatten(0, -2)
        to_x = (g[..., None] * weight).sum(-2) if ctx.needs_input_grad[0] else None
        to_weight = None
        if ctx.needs_input_grad[1]:
            to_weight = (rows[:, :, None] * x.flatten(0, -2)[:, None, :]).sum(0)
        return to_x, to_weight, rows.sum(0) if ctx.needs_input_grad[2] else None


class LinearOfViews(Linear):
    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        rows = g.view(-1, g.shape[-1])
        to_x = g @ weight if ctx.needs_input_grad[0] else None
        to_weight = rows.T @ x.flatten(0, -2) if ctx.needs_input_grad[1] else None
        return to_x, to_weight, rows.sum(0) if ctx.needs_input_grad[2] else None


class LinearZeroing(Linear):
    @staticmethod
    def backward(ctx, g):
        result = Linear.backward(ctx, g)
        g.zero_()
        return result


# seeded_dropout


def mask_of(shape, p, seed):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) >= p


class SeededDropout(Function):
    @staticmethod
    def forward(ctx, x, p, seed):
        ctx.p, ctx.seed = p, seed
        return x * mask_of(x.shape, p, seed) / (1 - p)

    @staticmethod
    def backward(ctx, g):
        return g * mask_of(g.shape, ctx.p, ctx.seed) / (1 - ctx.p), None, None


def seeded_dropout(x, p, seed):
    return SeededDropout.apply(x, p, seed)


class ForkedDropout(Function):
    @staticmethod
    def run(tensor, p, seed):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return nn.functional.dropout(tensor, p)

    @staticmethod
    def forward(x, p, seed):
        return ForkedDropout.run(x, p, seed)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, *ctx.how = inputs

    @staticmethod
    def backward(ctx, g):
        return ForkedDropout.run(g, *ctx.how), None, None


def dropout(keep=lambda ctx, mask: None, again=lambda ctx, g: mask_of(g.shape, ctx.p, ctx.seed), scaled=True):
    def forward(ctx, x, p, seed):
        ctx.p, ctx.seed = p, seed
        mask = mask_of(x.shape, p, seed)
        keep(ctx, mask)
        return x * mask / (1 - p)

    def backward(ctx, g):
        return g * again(ctx, g) / (1 - ctx.p if scaled else 1), None, None

    apply = function(forward, backward)
    return lambda x, p, seed: apply(x, p, seed)


class GlobalDropout(Function):
    @staticmethod
    def forward(ctx, x, p, seed):
        ctx.p, ctx.seed = p, seed
        torch.manual_seed(seed)
        return x * (torch.rand(x.shape) >= p) / (1 - p)

    @staticmethod
    def backward(ctx, g):
        torch.manual_seed(ctx.seed)
        return g * (torch.rand(g.shape) >= ctx.p) / (1 - ctx.p), None, None


class ResultDropout(Function):
    """Keeps no mask but its result, which shows where zeros are."""

    @staticmethod
    def forward(ctx, x, p, seed):
        ctx.p = p
        y = x * mask_of(x.shape, p, seed) / (1 - p)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * (ctx.saved_tensors[0] != 0) / (1 - ctx.p), None, None


def keep_state(ctx, mask):
    ctx.state = torch.Generator().manual_seed(ctx.seed).get_state()


def mask_from_state(ctx, g):
    generator = torch.Generator()
    generator.set_state(ctx.state)
    return torch.rand(g.shape, generator=generator) >= ctx.p


MASKS = {}


def keep_elsewhere(ctx, mask):
    MASKS["last"] = mask


def keep_as_one_number(ctx, mask):
    ctx.number = int("".join("01"[bit] for bit in mask.flatten().tolist()), 2)


def mask_from_number(ctx, g):
    bits = bin(ctx.number)[2:].zfill(g.numel())
    return torch.tensor([bit == "1" for bit in bits]).reshape(g.shape)


def keep_generator(ctx, mask):
    ctx.generator = torch.Generator().manual_seed(ctx.seed)


class DropoutInPlace(SeededDropout):
    @staticmethod
    def backward(ctx, g):
        return g.mul_(mask_of(g.shape, ctx.p, ctx.seed)).div_(1 - ctx.p), None, None


class DropoutBySeed(Function):
    """Keeps its masks in a table of its own, by the seed."""

    @staticmethod
    def forward(ctx, x, p, seed):
        ctx.p, ctx.seed = p, seed
        MASKS[seed] = mask_of(x.shape, p, seed)
        return x * MASKS[seed] / (1 - p)

    @staticmethod
    def backward(ctx, g):
        return g * MASKS[ctx.seed] / (1 - ctx.p), None, None


def dropout_of(mask):
    """Dropout by another mask of (shape, p, seed), a tensor of numbers that is already divided."""

    def forward(ctx, x, p, seed):
        ctx.how = p, seed
        return x * mask(x.shape, p, seed)

    def backward(ctx, g):
        return g * mask(g.shape, *ctx.how), None, None

    return function(forward, backward)


RIGHT = {
    "predict_functions": [PREDICTED, dict(reversed(PREDICTED.items()))],
    "squash": [squash, SquashInTwo.apply],
    "clamp_inward": [clamp_inward, ClampBySide.apply, clamper(inward)],
    "swish": [lambda x, beta: Swish.apply(x, beta), SwishSummed.apply, swisher(), CopyingSwish.apply],
    "agrees": [agrees, agrees_on_random_lines],
    "log_cosh": [lambda x: LogCosh.apply(x), LogCoshNested.apply, lambda x: LogCoshTwoOutputs.apply(x)[0]],
    "thrifty_linear": [thrifty_linear, LinearInTwo.apply, linear()],
    "seeded_dropout": [seeded_dropout, ForkedDropout.apply],
}

MISCONCEIVED = {
    ("predict_functions", "None is an error"): {**PREDICTED, "no_return": "raises"},
    ("predict_functions", "shapes must be equal"): {**PREDICTED, "not_summed": "raises"},
    ("predict_functions", "ctx checks versions"): {**PREDICTED, "on_ctx_then_written": "raises"},
    ("squash", "the input is kept"): squasher(save_x, from_x),
    ("squash", "hung on ctx"): squasher(hang_y, lambda ctx, g: g * (1 - ctx.y**2) ** 1.5),
    ("squash", "the derivative alone"): squasher(save_y, lambda ctx, g: (1 - ctx.saved_tensors[0] ** 2) ** 1.5),
    ("squash", "no return"): squasher(save_y, nothing),
    ("clamp_inward", "everything passes"): clamper(lambda x, g, low, high: torch.ones_like(x)),
    ("clamp_inward", "the clamp's own gradient"): clamper(lambda x, g, low, high: (x >= low) & (x <= high)),
    ("clamp_inward", "outward"): clamper(
        lambda x, g, low, high: ((x >= low) & (x <= high)) | ((x < low) & (g > 0)) | ((x > high) & (g < 0))
    ),
    ("swish", "tensors on ctx"): swisher(attributes=True),
    ("swish", "beta without g"): swisher(beta_gradient=lambda g, full, beta: full.sum_to_size(beta.shape)),
    ("swish", "summed too far"): swisher(beta_gradient=lambda g, full, beta: (g * full).sum()),
    ("agrees", "only the sum"): agrees_on_the_sum,
    ("agrees", "all numbers at once"): agrees_all_at_once,
    ("agrees", "a coarse difference"): agrees_coarsely(step=1e-2),
    ("agrees", "too tolerant"): agrees_coarsely(rtol=0.1),
    ("log_cosh", "an intermediate is saved"): lambda x: LogCoshIntermediate.apply(x),
    ("log_cosh", "only one step farther"): lambda x: LogCoshOneStep.apply(x),
    ("thrifty_linear", "everything is computed"): linear(compute="all"),
    ("thrifty_linear", "everything is kept"): linear(save="all"),
    ("thrifty_linear", "attributes of ctx"): linear(save="attributes"),
    ("seeded_dropout", "the mask is kept"): dropout(
        lambda ctx, mask: ctx.save_for_backward(mask), lambda ctx, g: ctx.saved_tensors[0]
    ),
    ("seeded_dropout", "another mask in backward"): dropout(again=lambda ctx, g: mask_of(g.shape, ctx.p, ctx.seed + 1)),
    ("seeded_dropout", "the global generator"): lambda x, p, seed: GlobalDropout.apply(x, p, seed),
    ("seeded_dropout", "not scaled in backward"): dropout(scaled=False),
}

WRONG = {
    "predict_functions": [dict.fromkeys(PREDICTED, "raises"), dict.fromkeys(PREDICTED, True), list(PREDICTED)],
    "squash": [
        lambda x: x / (1 + x**2).sqrt(),
        squasher(save_copy, from_y),
        squasher(save_slope, lambda ctx, g: g * ctx.saved_tensors[0]),
        squasher(save_y, lambda ctx, g: g * (1 - ctx.saved_tensors[0] ** 2)),
        squasher(save_y, once_differentiable(from_y)),
        lambda x: checkpoint(lambda t: t / (1 + t**2).sqrt(), x, use_reentrant=True),
        lambda x: checkpoint(lambda t: t / (1 + t**2).sqrt(), x, use_reentrant=False),
        lambda x: squash(x) * 1,
        lambda x: squash(x.detach().requires_grad_()),
        lambda x: (squash(x),),
        squasher(save_y, from_y_in_place),
        squasher(save_y, from_y_in_place_at_first),
        gradients_off_after(squash),
        hooked(squash),
        lambda x: squash(x.requires_grad_()),
    ],
    "clamp_inward": [
        lambda x, low, high: x.clamp(low, high),
        lambda x, low, high: x + (x.clamp(low, high) - x).detach(),
        clamper(inward, nones=1),
        lambda x, low, high: ClampInward.apply(x, -1.25, 2.5),
        clamper(lambda x, g, low, high: ((x > low) & (x < high)) | inward(x, g, low + 1e-9, high - 1e-9)),
        clamper(lambda x, g, low, high: inward(x, g, low, high) * 1.5),
        lambda x, low, high: x.detach().clamp(low, high).requires_grad_(),
        ClampInPlace.apply,
        ClampInSingle.apply,
        ClampOnCtx.apply,
        ClampOnTheClass.apply,
        clamp_writing_to_x,
    ],
    "swish": [
        swisher(swap=True),
        swisher(attributes=True, beta_gradient=lambda g, full, beta: full.sum(), swap=True),
        swisher(beta_gradient=lambda g, full, beta: None),
        lambda x, beta: HalfSwish.apply(x, beta),
        SwishInPlace.apply,
        SwishDeleting.apply,
        hooked(Swish.apply),
        lambda x, beta: x * torch.sigmoid(beta * x),
        lambda x, beta: Swish.apply(x, beta) + 0,
    ],
    "agrees": [
        agrees_by_library,
        agrees_and_leaves_a_gradient,
        lambda function, x: True,
        lambda function, x: False,
        lambda function, x: "right",
        lambda function, x: 1,
        agrees_coarsely(step=1e-3, one_sided=True),
        agrees_coarsely(step=1e-13),
        agrees_coarsely(rtol=10, atol=10),
        gradients_off_after(agrees),
    ],
    "log_cosh": [
        lambda x: x.cosh().log(),
        lambda x: LogCoshOnce.apply(x),
        lambda x: LogCosh.apply(x) + 0,
        lambda x: Tanh.apply(x),
        lambda x: LogCosh.apply(x.detach()),
        lambda x: LogCoshByDifferences.apply(x),
        lambda x: LogCoshOfACopy.apply(x),
        LogCoshOnCtx.apply,
        LogCoshInPlace.apply,
    ],
    "thrifty_linear": [
        nn.functional.linear,
        lambda x, weight, bias: WholeLinear.apply(x, weight, bias),
        lambda x, weight, bias: Linear.apply(x.clone(), weight, bias),
        lambda x, weight, bias: Linear.apply(x, weight, None),
        lambda x, weight, bias: Linear.apply(x, weight.T, bias),
        linear(save="all", compute="all"),
        lambda x, weight, bias: CopyingLinear.apply(x, weight, bias),
        lambda x, weight, bias: SparinglyCopyingLinear.apply(x, weight, bias),
        LinearClearing.apply,
        LinearByElements.apply,
        LinearOfViews.apply,
        LinearZeroing.apply,
    ],
    "seeded_dropout": [
        lambda x, p, seed: nn.functional.dropout(x, p),
        lambda x, p, seed: x * mask_of(x.shape, p, seed) / (1 - p),
        lambda x, p, seed: SeededDropout.apply(x, 1 - p, seed),
        lambda x, p, seed: SeededDropout.apply(x, p, 7),
        dropout(lambda ctx, mask: setattr(ctx, "mask", mask), lambda ctx, g: ctx.mask),
        dropout(lambda ctx, mask: setattr(ctx, "mask", mask.numpy()), lambda ctx, g: torch.from_numpy(ctx.mask)),
        dropout(lambda ctx, mask: setattr(ctx, "mask", mask.tolist()), lambda ctx, g: torch.tensor(ctx.mask)),
        dropout(
            lambda ctx, mask: setattr(ctx, "mask", mask.numpy().tobytes()),
            lambda ctx, g: torch.frombuffer(bytearray(ctx.mask), dtype=torch.bool).reshape(g.shape),
        ),
        lambda x, p, seed: ResultDropout.apply(x, p, seed),
        dropout(keep_state, mask_from_state),
        dropout(keep_elsewhere, lambda ctx, g: MASKS["last"]),
        dropout(keep_as_one_number, mask_from_number),
        DropoutInPlace.apply,
        DropoutBySeed.apply,
        dropout_of(lambda shape, p, seed: mask_of(shape[-1:], p, seed) / (1 - p)),
        dropout_of(lambda shape, p, seed: mask_of(shape[:1], p, seed).reshape(-1, *[1] * (len(shape) - 1)) / (1 - p)),
        dropout_of(lambda shape, p, seed: mask_of(shape, p, seed % 2) / (1 - p)),
        dropout_of(lambda shape, p, seed: mask_of(shape, p, seed).float() / (1 - p)),
        dropout(keep_generator, lambda ctx, g: torch.rand(g.shape, generator=ctx.generator) >= ctx.p),
        lambda x, p, seed: checkpoint(lambda t: t * mask_of(t.shape, p, seed) / (1 - p), x, use_reentrant=False),
    ],
}
