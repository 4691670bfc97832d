"""Right and wrong answers to `thrifty_linear`."""

import torch
from torch import nn
from torch.autograd import Function

from tests.answers.lesson_10_custom_functions.functions import function
from tests.answers.said import said


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
            anything = rows @ rows.new_ones(g.shape[-1], 5), rows.T @ rows.new_ones(len(rows), 5)
        to_x = g @ weight if needs[0] else (anything[0].reshape(*g.shape[:-1], 5) if compute == "all" else None)
        to_weight = rows.T @ x.flatten(0, -2) if needs[1] else None
        return to_x, to_weight, rows.sum(0) if needs[2] else None

    apply = function(forward, backward)
    return lambda x, weight, bias: apply(x, weight, bias)


class LinearBySide(Linear):
    """A square weight is turned round: its shape does not tell which side it is on."""

    @staticmethod
    def backward(ctx, g):
        to_x, *rest = Linear.backward(ctx, g)
        weight = ctx.saved_tensors[1]
        if to_x is not None and weight.shape[0] == weight.shape[1]:
            to_x = g @ weight.T
        return to_x, *rest


class LinearInThree(Linear):
    """Knows of two dimensions and of three."""

    @staticmethod
    def backward(ctx, g):
        return Linear.backward(ctx, g if g.dim() < 4 else g[0])


class LinearKeepingAll(Linear):
    @staticmethod
    def forward(ctx, x, weight, bias):
        y = Linear.forward(ctx, x, weight, bias)
        ctx.save_for_backward(*ctx.to_save, bias)
        return y

    @staticmethod
    def backward(ctx, g):
        x, weight, _ = ctx.saved_tensors
        rows, (for_x, for_weight, for_bias) = g.flatten(0, -2), ctx.needs_input_grad
        to_weight = rows.T @ x.flatten(0, -2) if for_weight else None
        return g @ weight if for_x else None, to_weight, rows.sum(0) if for_bias else None


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


class LinearOfMeans(Linear):
    """Takes the mean for the bias, where each row adds its gradient."""

    @staticmethod
    def backward(ctx, g):
        to_x, to_weight, to_bias = Linear.backward(ctx, g)
        return to_x, to_weight, to_bias if to_bias is None else g.flatten(0, -2).mean(0)


class LinearTwice(Linear):
    @staticmethod
    def forward(ctx, x, weight, bias):
        return 2 * Linear.forward(ctx, x, weight, bias) - nn.functional.linear(x, weight, bias)


class LinearRemembering(Linear):
    """Keeps with the class what the last pass used."""

    @staticmethod
    def backward(ctx, g):
        LinearRemembering.last = ctx.saved_tensors
        return Linear.backward(ctx, g)


class LinearAlwaysBias(Linear):
    """Gives a gradient for the bias where there is none."""

    @staticmethod
    def backward(ctx, g):
        return *Linear.backward(ctx, g)[:2], g.flatten(0, -2).sum(0)


class LinearTurnedAround(Linear):
    """Keeps the factor that has the gradient, and not the one that makes it."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        x_needed, weight_needed, _ = ctx.needs_input_grad
        ctx.save_for_backward(x if x_needed else None, weight if weight_needed else None)
        return nn.functional.linear(x, weight, bias)


class LinearOfShort(Linear):
    """Cuts long gradients off."""

    @staticmethod
    def backward(ctx, g):
        return Linear.backward(ctx, g.clamp(-1e3, 1e3))


class LinearOfLong(Linear):
    """Takes small gradients for none."""

    @staticmethod
    def backward(ctx, g):
        return Linear.backward(ctx, g * (g.abs() > 1e-6))


class LinearSummingByProduct(Linear):
    """Sums for the bias by a product with ones."""

    @staticmethod
    def backward(ctx, g):
        to_x, to_weight, to_bias = Linear.backward(ctx, g)
        rows = g.flatten(0, -2)
        return to_x, to_weight, None if to_bias is None else (rows.new_ones(1, len(rows)) @ rows)[0]


class LinearKeepingX(Function):
    """Keeps x in any case, and the weight where it will be used."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight if ctx.needs_input_grad[0] else None)
        return nn.functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx, g):
        (x, weight), (of_x, of_weight, of_bias) = ctx.saved_tensors, ctx.needs_input_grad
        rows = g.flatten(0, -2)
        return (
            g @ weight if of_x else None,
            rows.T @ x.flatten(0, -2) if of_weight else None,
            rows.sum(0) if of_bias else None,
        )


RIGHT = [thrifty_linear, LinearInTwo.apply, linear()]

MISCONCEIVED = {
    "a gradient of None": LinearAlwaysBias.apply,
    "the wrong factor": LinearTurnedAround.apply,
    "everything is computed": lambda x, weight, bias: WholeLinear.apply(x, weight, bias),
    "everything is kept": linear(save="all"),
    "attributes of ctx": linear(save="attributes"),
}


class FrozenBiasForgotten(Linear):
    @staticmethod
    def forward(ctx, x, weight, bias):
        return Linear.forward(ctx, x, weight, bias if ctx.needs_input_grad[2] else None)


class ResultKept(LinearKeepingAll):
    @staticmethod
    def forward(ctx, x, weight, bias):
        y = Linear.forward(ctx, x, weight, bias)
        ctx.save_for_backward(*ctx.to_save, y)
        return y


class LinearOfTheLastWants(Linear):
    """What a call wants is kept in the class, where the next one writes."""

    wants = ()

    @staticmethod
    def forward(ctx, x, weight, bias):
        LinearOfTheLastWants.wants = ctx.needs_input_grad
        return Linear.forward(ctx, x, weight, bias)

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        to_x, to_weight, to_bias = LinearOfTheLastWants.wants
        rows = g.flatten(0, -2)
        return (
            g @ weight if to_x else None,
            rows.T @ x.flatten(0, -2) if to_weight else None,
            rows.sum(0) if to_bias else None,
        )


class LinearOfViewedX(Linear):
    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        rows, needs = g.flatten(0, -2), ctx.needs_input_grad
        to_weight = rows.T @ x.view(len(rows), -1) if needs[1] else None
        return g @ weight if needs[0] else None, to_weight, rows.sum(0) if needs[2] else None


linear_of_viewed_x = LinearOfViewedX.apply


class LinearOfSqueezed(Linear):
    """Loses the shape of a bias of one number."""

    @staticmethod
    def backward(ctx, g):
        to_x, to_weight, to_bias = Linear.backward(ctx, g)
        return to_x, to_weight, None if to_bias is None else to_bias.squeeze()


WRONG = [
    LinearOfTheLastWants.apply,
    linear_of_more := linear(compute="all"),
    LinearSummingByProduct.apply,
    lambda x, weight, bias: LinearOfShort.apply(x, weight, bias),
    lambda x, weight, bias: LinearOfLong.apply(x, weight, bias),
    lambda x, weight, bias: FrozenBiasForgotten.apply(x, weight, bias),
    lambda x, weight, bias: ResultKept.apply(x, weight, bias),
    nn.functional.linear,
    lambda x, weight, bias: Linear.apply(x.clone(), weight, bias),
    lambda x, weight, bias: Linear.apply(x, weight, None),
    lambda x, weight, bias: Linear.apply(x, weight.T, bias),
    linear(save="all", compute="all"),
    lambda x, weight, bias: CopyingLinear.apply(x, weight, bias),
    linear_of_copies := lambda x, weight, bias: SparinglyCopyingLinear.apply(x, weight, bias),
    said(linear_clearing := LinearClearing.apply, "attributes of ctx"),
    LinearByElements.apply,
    LinearBySide.apply,
    LinearInThree.apply,
    LinearKeepingAll.apply,
    linear_of_views := LinearOfViews.apply,
    linear_zeroing := LinearZeroing.apply,
    linear_of_means := LinearOfMeans.apply,
    linear_twice := LinearTwice.apply,
    linear_remembering := LinearRemembering.apply,
    said(LinearKeepingX.apply, "everything is kept"),
    linear_of_viewed_x,
    LinearOfSqueezed.apply,
    linear_and_a_sum := lambda x, weight, bias: Linear.apply(x, weight, bias) + 0,
]

EQUIVALENT = {
    "Linear.backward: rows = g.flatten(0, -2) | to_x = g @ weight if ctx.needs_input_grad[0] else None -> (swapped)": "Neither line reads what the other one writes.",
    "Linear.backward: to_weight = rows.T @ x.flatten(0, -2) if ctx.needs_input_grad[1] else None | to_bias = rows.sum(0) if ctx.needs_input_gr... -> (swapped)": "Neither line reads what the other one writes.",
    "Linear.backward: to_x = g @ weight if ctx.needs_input_grad[0] else None | to_weight = rows.T @ x.flatten(0, -2) if ctx.needs_input_grad[1... -> (swapped)": "Neither line reads what the other one writes.",
    "Linear.backward: x, weight = ctx.saved_tensors | rows = g.flatten(0, -2) -> (swapped)": "Neither line reads what the other one writes.",
    "LinearInTwo.backward: if 'weight' in kept: ... | if 'x' in kept: ... -> (swapped)": "Neither line reads what the other one writes.",
    "LinearInTwo.backward: if 'x' in kept: ... | if ctx.needs_input_grad[2]: ... -> (swapped)": "Neither line reads what the other one writes.",
    "LinearInTwo.setup_context: ctx.names = list(tensors) | ctx.save_for_backward(*tensors.values()) -> (swapped)": "Neither line reads what the other one writes.",
    "LinearInTwo.setup_context: if ctx.needs_input_grad[0]: ... | if ctx.needs_input_grad[1]: ... -> (swapped)": "Neither line reads what the other one writes.",
    "linear.backward: to_x = g @ weight if needs[0] else None | to_weight = rows.T @ x.flatten(0, -2) if needs[1] else None -> (swapped)": "Neither line reads what the other one writes.",
    "linear.backward: x, weight = ctx.saved_tensors | rows, needs = (g.flatten(0, -2), ctx.needs_input_grad) -> (swapped)": "Neither line reads what the other one writes.",
}

GUARDS = {
    "with a Function of its own": {"one node": linear_and_a_sum},
    "goes through `save_for_backward`, not onto `ctx`": {"attribute": linear_clearing},
    "The gradient that comes in, the inputs": {"left alone": linear_zeroing},
    "It returns what `nn.functional.linear` returns": {"value": linear_of_means},
    "`x` has two or more dimensions": {"runs": linear_of_views},
    "There is exactly one matrix product in the forward": {"forward": linear_twice},
    "in the backward exactly one for each of `x` and `weight` that wants a gradient": {"products": linear_of_more},
    "Kept for backward are `x` only if it will be used, and `weight` only if it will be used.": {
        "kept": MISCONCEIVED["everything is kept"],
        "copied": linear_of_copies,
    },
    "After the pass neither may be held.": {"held": linear_remembering},
}


def linear_of_convolutions(x, weight, bias):
    """Multiplies more than it needs to, as a convolution."""
    with torch.no_grad():
        nn.functional.conv1d(x.flatten(0, -2)[:, :, None], weight[:, :, None])
    return RIGHT[0](x, weight, bias)


WRONG.append(linear_of_convolutions)


def linear_by_numbers_too(x, weight, bias):
    """Does the work of a further product, number by number."""
    with torch.no_grad():
        assert (x.unsqueeze(-2) * weight).sum(-1).shape[-1] == len(weight)
    return RIGHT[0](x, weight, bias)


WRONG.append(linear_by_numbers_too)
GUARDS["There is exactly one matrix product in the forward"]["spread"] = linear_by_numbers_too
