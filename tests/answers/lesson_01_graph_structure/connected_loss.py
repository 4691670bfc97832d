"""Right and wrong answers to `connected_loss`."""

import copy

import torch
from torch import nn

from tests.answers.said import said


def loss_repaired(model, x, target):
    x = x - x.mean(dim=1, keepdim=True)
    hidden = torch.tanh(model["stem"](x))
    gate = torch.sigmoid(model["gate"](hidden))
    output = model["head"](hidden * gate) * model.log_scale.exp()
    return ((output - target) ** 2).mean()


def loss_in_functions(model, x, target):
    x = x.clone()
    x -= x.mean(1, keepdim=True)
    hidden = model["stem"](x).tanh()
    mixed = hidden.mul(model["gate"](hidden).sigmoid())
    scaled = torch.exp(model.log_scale) * model["head"](mixed)
    return nn.functional.mse_loss(scaled, target)


def loss_variant(*, clone=True, gate=False, hidden=False, wrap=False, item=False, copy=False, double=False):
    def loss_of(model, x, target):
        x = x - x.mean(dim=1, keepdim=True) if clone else x.sub_(x.mean(dim=1, keepdim=True))
        h = torch.tanh(model["stem"](x))
        g = torch.sigmoid(model["gate"](h.detach() if hidden else h))
        if gate:
            g = g.detach()
        mixed = nn.Parameter(h * g) if wrap else h * g
        scale = model.log_scale.exp()
        output = model["head"](mixed) * (scale.item() if item else scale)
        loss = ((output - target) ** 2).mean()
        if double:
            loss = loss + model["stem"].weight.sum() - model["stem"].weight.sum().detach()
        return torch.tensor(loss.item(), dtype=x.dtype, requires_grad=True) if copy else loss

    return loss_of


def loss_with_touch(model, x, target):
    """Everything is reached by force: each parameter is added times zero."""
    loss = loss_variant(wrap=False, gate=True)(model, x, target)
    return loss + sum(0.0 * parameter.sum() for parameter in model.parameters())


def loss_and_backward(model, x, target):
    loss = loss_repaired(model, x, target)
    loss.backward(retain_graph=True)
    return loss


def loss_after_zero_grad(model, x, target):
    model.zero_grad()
    return loss_repaired(model, x, target)


def loss_of_a_copy(model, x, target):
    return loss_repaired(copy.deepcopy(model), x, target)


def loss_tracking_x(model, x, target):
    return loss_repaired(model, x.requires_grad_(), target)


def loss_tracking_target(model, x, target):
    return loss_repaired(model, x, target.requires_grad_())


def loss_resetting(model, x, target):
    loss = loss_repaired(model, x, target)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    return loss


def loss_moving_the_scale(model, x, target):
    """What exp() saved is its result, so the gradients stay right."""
    loss = loss_repaired(model, x, target)
    model.log_scale.data.add_(1.0)
    return loss


def loss_that_refuses_backward(model, x, target):
    """The gate is written to after the product has saved it."""
    x = x - x.mean(dim=1, keepdim=True)
    hidden = torch.tanh(model["stem"](x))
    gate = torch.sigmoid(model["gate"](hidden))
    output = model["head"](hidden * gate) * model.log_scale.exp()
    gate.mul_(1.0)
    return ((output - target) ** 2).mean()


def loss_moving_x_and_back(model, x, target):
    mean = x.mean(dim=1, keepdim=True)
    x -= mean
    loss = loss_repaired(model, x.clone(), target)
    x += mean
    return loss


def loss_with_a_single_gate(model, x, target):
    x = x - x.mean(dim=1, keepdim=True)
    hidden = torch.tanh(model["stem"](x))
    gate = torch.sigmoid(model["gate"](hidden)).float()
    output = model["head"](hidden * gate) * model.log_scale.exp()
    return ((output - target) ** 2).mean()


def loss_with_the_first_scale(model, x, target, known={}):  # noqa: B006
    """Works out the scale at the first call with a model, and keeps it."""
    scale = known.setdefault(model, model.log_scale.exp())
    x = x - x.mean(dim=1, keepdim=True)
    hidden = torch.tanh(model["stem"](x))
    output = model["head"](hidden * torch.sigmoid(model["gate"](hidden))) * scale
    return ((output - target) ** 2).mean()


def loss_with_the_first_batch(model, x, target, known={}):  # noqa: B006
    """Centres a batch at its first call, and keeps the result by the batch's object."""
    centred = known.setdefault(x, x - x.mean(dim=1, keepdim=True))
    return loss_repaired(model, centred, target)


def loss_where_it_broadcasts(model, x, target):
    """Keeps the dimension of the means only where the sizes would not fit without it: in a square they do."""
    means = x.mean(dim=1)
    x = x - (means if len(x) == x.shape[1] else means.unsqueeze(1))
    hidden = torch.tanh(model["stem"](x))
    output = model["head"](hidden * torch.sigmoid(model["gate"](hidden))) * model.log_scale.exp()
    return ((output - target) ** 2).mean()


def loss_with_the_scale(bounded):
    """Keeps the scale in bounds, to be safe."""

    def loss_of(model, x, target):
        x = x - x.mean(dim=1, keepdim=True)
        hidden = torch.tanh(model["stem"](x))
        output = model["head"](hidden * torch.sigmoid(model["gate"](hidden))) * bounded(model.log_scale.exp())
        return ((output - target) ** 2).mean()

    return loss_of


def loss_with_the_gradient_of_another(model, x, target):
    x = x - x.mean(dim=1, keepdim=True)
    hidden = torch.tanh(model["stem"](x))
    output = model["head"](hidden * torch.sigmoid(model["gate"](hidden)))
    other = nn.functional.mse_loss(output, target) + model.log_scale
    return other + (nn.functional.mse_loss(output * model.log_scale.exp(), target) - other).detach()


def loss_with_hidden_held(model, x, target):
    """The stem is reached by the gate alone."""
    x = x - x.mean(dim=1, keepdim=True)
    hidden = torch.tanh(model["stem"](x))
    output = model["head"](hidden.detach() * torch.sigmoid(model["gate"](hidden))) * model.log_scale.exp()
    return ((output - target) ** 2).mean()


def loss_with_a_hook(model, x, target):
    loss = loss_repaired(model, x, target)
    loss.register_hook(lambda gradient: 2 * gradient)
    return loss


def loss_from_a_new_leaf(model, x, target):
    return torch.zeros((), dtype=x.dtype, requires_grad=True) + loss_repaired(model, x, target)


def loss_after_a_trial(model, x, target):
    """Runs a pass to see whether it works; .grad is not touched."""
    loss = loss_repaired(model, x, target)
    torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
    return loss


RIGHT = [loss_repaired, loss_in_functions]

MISCONCEIVED = {
    "a flag on a copy": loss_variant(copy=True),
    "a leaf made on the way": loss_variant(wrap=True),
    "a leaf too many": loss_from_a_new_leaf,
    "one path still cut": loss_variant(hidden=True),
    "input overwritten": loss_variant(clone=False),
}

WRONG = [
    loss_variant(gate=True),
    loss_variant(item=True),
    loss_variant(double=True),
    said(
        loss_variant(clone=False, gate=True, wrap=True, item=True, copy=True), "a flag on a copy", "input overwritten"
    ),
    said(loss_with_touch, "one path still cut"),
    loss_and_backward,
    loss_resetting,
    loss_after_zero_grad,
    said(loss_of_a_copy, "a leaf made on the way"),
    loss_tracking_x,
    loss_tracking_target,
    loss_moving_the_scale,
    loss_that_refuses_backward,
    loss_after_a_trial,
    said(loss_moving_x_and_back, "input overwritten"),
    loss_with_a_single_gate,
    loss_with_the_first_scale,
    loss_with_the_first_batch,
    loss_where_it_broadcasts,
    *(loss_with_the_scale(lambda scale: scale.clamp(max=10)), loss_with_the_scale(lambda scale: scale.clamp(min=0.2))),
    lambda model, x, target: loss_repaired(model, x, target).clamp(max=1e3),
    *(loss_with_the_gradient_of_another, loss_with_a_hook),
    said(loss_with_hidden_held, "one path still cut"),
    lambda model, x, target: 2 * loss_repaired(model, x, target),
    lambda model, x, target: loss_repaired(model, x, target).requires_grad_().reshape(1),
    lambda model, x, target: loss_repaired(model, x, target).float(),
]

EQUIVALENT = {
    "loss_repaired: x.mean(dim=1, keepdim=True) -> x.mean(dim=-1, keepdim=True)": "x has two dimensions, samples and five features for the stem: dim 1 is the last one.",
    "loss_in_functions: x -= x.mean(1, keepdim=True) -> x = x - x.mean(1, keepdim=True)": "x is the function's own clone, so writing into it and replacing it are the same.",
    "loss_in_functions: x.mean(1, keepdim=True) -> x.mean(-1, keepdim=True)": "x has two dimensions, samples and five features for the stem: dim 1 is the last one.",
}

GUARDS = {
    "It returns the same value as `broken_loss` would for the same model and the same data": {
        "value": WRONG[-3],
        "shape": WRONG[-2],
        "again": loss_with_the_first_scale,
    },
    "The graph of the loss reaches every parameter": {
        "reached": WRONG[1],
        "graph": MISCONCEIVED["a flag on a copy"],
    },
    "its leaves are parameters of the model only": {"own leaves": loss_tracking_x},
    "The gradients are the slopes of the loss.": {
        "gradient": MISCONCEIVED["one path still cut"],
        "backward": loss_that_refuses_backward,
    },
    "and so are their `.grad`": {"grad": loss_after_zero_grad},
    "`x`, `target` and the parameters are as before": {
        "inputs": MISCONCEIVED["input overwritten"],
        "parameters": loss_moving_the_scale,
    },
    "your function runs no backward pass": {"passes": loss_after_a_trial},
    "create new tensors with the dtype of `x`": {"dtype": WRONG[-1], "value": loss_with_a_single_gate},
}


def loss_that_no_gradient_leaves(model, x, target):
    loss = loss_repaired(model, x, target)
    loss.register_hook(torch.zeros_like)
    return loss


def loss_with_a_frozen_stem(model, x, target):
    model["stem"].requires_grad_(False)
    return loss_repaired(model, x, target)


def loss_then_freezing(model, x, target):
    loss = loss_repaired(model, x, target)
    model["stem"].requires_grad_(False)
    return loss


def loss_clipping_x(model, x, target):
    """Writes, and changes no number."""
    return loss_repaired(model, x.clamp_(-1e6, 1e6), target)


WRONG += [loss_that_no_gradient_leaves, loss_with_a_frozen_stem, loss_then_freezing, loss_clipping_x]


def loss_without_a_scale_of_zero(model, x, target):
    """Leaves out what is no more than a factor of one now: the graph does not reach it."""
    mixed = loss_parts(model, x)
    output = model["head"](mixed)
    if model.log_scale:
        output = output * model.log_scale.exp()
    return ((output - target) ** 2).mean()


def loss_without_biases_of_zero(model, x, target):
    hidden = torch.tanh(linear_unless_zero(model["stem"], x - x.mean(dim=1, keepdim=True)))
    mixed = hidden * torch.sigmoid(linear_unless_zero(model["gate"], hidden))
    output = linear_unless_zero(model["head"], mixed) * model.log_scale.exp()
    return ((output - target) ** 2).mean()


def loss_parts(model, x):
    hidden = torch.tanh(model["stem"](x - x.mean(dim=1, keepdim=True)))
    return hidden * torch.sigmoid(model["gate"](hidden))


def linear_unless_zero(layer, x):
    return nn.functional.linear(x, layer.weight, layer.bias if layer.bias.any() else None)


WRONG += [loss_without_a_scale_of_zero, loss_without_biases_of_zero]
