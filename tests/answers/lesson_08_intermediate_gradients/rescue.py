"""Right and wrong answers to `rescue`."""

from copy import deepcopy
from functools import partial

import torch
from torch import nn

from tests.answers.said import said


def rescue_by_kaiming(model):
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.kaiming_normal_(module.weight)


def rescue_by_orthogonal(model):
    for layer in model:
        if isinstance(layer, nn.Linear):
            nn.init.orthogonal_(layer.weight, gain=2**0.5)


def rescue_by_scaling(model):
    """PyTorch's start has a variance of 1 / (3 n): this only scales it."""
    with torch.no_grad():
        for weight in list(model.parameters())[::2]:
            weight *= 6**0.5


def rescue_at_low_rank(model):
    """Nobody asks for full rank: one unit of each layer starts as twice another one."""
    rescue_by_kaiming(model)
    for weight in list(model.parameters())[::2]:
        weight.data[0] = 2 * weight.data[1]


def rescue_with(weights):
    def rescue(model):
        for module in model.modules():
            if isinstance(module, nn.Linear):
                weights(module.weight)
                nn.init.zeros_(module.bias)

    return rescue


def rescue_with_new_parameters(model):
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.weight = nn.Parameter(torch.randn_like(module.weight) * (2 / module.in_features) ** 0.5)
            module.bias = nn.Parameter(torch.zeros_like(module.bias))


def rescue_by_hooks(model):
    for module in model:
        if not isinstance(module, nn.Linear):
            module.register_full_backward_hook(lambda m, given, out: (given[0] / given[0].norm(),))


def rescue_by_new_layers(model):
    for number, layer in enumerate(model):
        if isinstance(layer, nn.ReLU | nn.Tanh):
            model[number] = nn.Identity()
    rescue_with(nn.init.orthogonal_)(model)


def rescue_deaf(model):
    """Gradients arrive, but the first layer hardly listens to the input."""
    rescue_by_kaiming(model)
    model[0].weight.data.mul_(1e-4)
    nn.init.normal_(model[0].bias)


def rescue_with_ones(model):
    rescue_with(lambda weight: nn.init.constant_(weight, 1 / weight.shape[1]))(model)


def rescue_with_twins(model):
    """Two units of the last layer start alike."""
    rescue_by_kaiming(model)
    model[-1].weight.data[1] = model[-1].weight.data[0]


def rescue_with_a_dead_unit(model):
    rescue_by_kaiming(model)
    model[4].weight.data[3] = 0


RIGHT = [rescue_by_kaiming, rescue_by_orthogonal, rescue_by_scaling, rescue_at_low_rank]

MISCONCEIVED = {
    "another model": lambda model: rescue_by_kaiming(deepcopy(model)),
    "still vanishing": rescue_with(lambda weight: nn.init.normal_(weight, std=0.02)),
    "too much": rescue_with(nn.init.normal_),
    "new parameters": rescue_with_new_parameters,
}


def rescue_with_zeros_at_the_end(model):
    rescue_by_kaiming(model)
    nn.init.zeros_(model[-1].weight)


def rescue_with_a_loud_start(model):
    rescue_by_kaiming(model)
    model[0].weight.data.mul_(90)


def rescue_a_little_short(model):
    """Biases keep the activations' sizes, and the gradient still shrinks a little in each layer."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.orthogonal_(module.weight, gain=1.13)
            nn.init.normal_(module.bias, std=0.1)


def rescue_too_steep(model):
    """Fit for ReLU. Behind tanh the activations keep their sizes, and the gradient grows from layer to layer."""
    behind_tanh = any(isinstance(module, nn.Tanh) for module in model.modules())
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.orthogonal_(module.weight, gain=30 if behind_tanh else 2**0.5)
            nn.init.zeros_(module.bias)


def rescue_behind_relu(model):
    """Leaves a model with tanh as it was."""
    if any(isinstance(module, nn.ReLU) for module in model):
        rescue_by_kaiming(model)


def rescue_with_one_small_layer(model):
    rescue_by_kaiming(model)
    model[8].weight.data.mul_(1e-5)


def rescue_with_low_biases(model):
    rescue_by_kaiming(model)
    for module in model:
        if isinstance(module, nn.Linear):
            nn.init.constant_(module.bias, -0.5)


def rescue_thawing(model):
    """Switches recording off by freezing, and thaws what was frozen before."""
    model.requires_grad_(False)
    for layer in model:
        if isinstance(layer, nn.Linear):
            layer.weight.normal_(0, (2 / layer.in_features) ** 0.5)
    model.requires_grad_(True)


def rescue_clearing(model):
    rescue_by_kaiming(model)
    model.zero_grad()


WRONG = [
    rescue_with_zeros_at_the_end,
    said(rescue_too_steep, "too much"),
    said(rescue_with_a_loud_start, "too much"),
    rescue_a_little_short,
    rescue_by_hooks,
    rescue_by_new_layers,
    rescue_with_ones,
    rescue_deaf,
    rescue_with_twins,
    rescue_with_a_dead_unit,
    rescue_with(nn.init.eye_),
    said(rescue_with(partial(nn.init.xavier_normal_, gain=0.9)), "still vanishing"),
    rescue_with(nn.init.zeros_),
    said(lambda model: model, "another model"),
    lambda model: model.eval(),
    lambda model: model.requires_grad_(False),
    said(rescue_behind_relu, "another model"),
    said(rescue_with_one_small_layer, "still vanishing"),
    rescue_with(lambda weight: nn.init.constant_(weight, torch.nan)),
    rescue_with_low_biases,
    rescue_thawing,
    rescue_clearing,
]

EQUIVALENT = {
    "rescue_by_orthogonal: nn.init.orthogonal_(layer.weight, gain=2 ** 0.5) -> nn.init.orthogonal_(layer.weight, gain=3 ** 0.5)": "The task asks for sizes between bounds, and leaves open how: these numbers lie within them, too.",
    "rescue_by_orthogonal: nn.init.orthogonal_(layer.weight, gain=2 ** 0.5) -> nn.init.orthogonal_(layer.weight, gain=-2 ** 0.5)": "The task asks for sizes between bounds, and leaves open how: these numbers lie within them, too.",
    "rescue_by_scaling: weight *= 6 ** 0.5 -> weight *= 7 ** 0.5": "The task asks for sizes between bounds, and leaves open how: these numbers lie within them, too.",
    "rescue_by_scaling: weight *= 6 ** 0.5 -> weight *= -6 ** 0.5": "The task asks for sizes between bounds, and leaves open how: these numbers lie within them, too.",
    "rescue_at_low_rank: for weight in list(model.parameters())[::2]: ... -> (dropped)": "The task asks for sizes between bounds, and leaves open how: these numbers lie within them, too.",
    "rescue_at_low_rank: list(model.parameters())[::2] -> list(model.parameters())[::3]": "The task asks for sizes between bounds, and leaves open how: these numbers lie within them, too.",
    "rescue_at_low_rank: list(model.parameters())[::2] -> list(model.parameters())[::-2]": "The task asks for sizes between bounds, and leaves open how: these numbers lie within them, too.",
    "rescue_at_low_rank: weight.data[0] = 2 * weight.data[1] -> (dropped)": "The task asks for sizes between bounds, and leaves open how: these numbers lie within them, too.",
    "rescue_at_low_rank: weight.data[0] -> weight.data[1]": "The task asks for sizes between bounds, and leaves open how: these numbers lie within them, too.",
    "rescue_at_low_rank: 2 * weight.data[1] -> 3 * weight.data[1]": "The task asks for sizes between bounds, and leaves open how: these numbers lie within them, too.",
    "rescue_at_low_rank: 2 * weight.data[1] -> -2 * weight.data[1]": "The task asks for sizes between bounds, and leaves open how: these numbers lie within them, too.",
    "rescue_at_low_rank: weight.data[1] -> weight[1]": "The task asks for sizes between bounds, and leaves open how: these numbers lie within them, too.",
    "rescue_at_low_rank: weight.data[1] -> weight.data[0]": "The task asks for sizes between bounds, and leaves open how: these numbers lie within them, too.",
    "rescue_at_low_rank: weight.data[1] -> weight.data[-1]": "The task asks for sizes between bounds, and leaves open how: these numbers lie within them, too.",
    "rescue_at_low_rank: rescue_by_kaiming(model) | for weight in list(model.parameters())[::2]: ... -> (swapped)": "The task asks for sizes between bounds, and leaves open how: these numbers lie within them, too.",
}

GUARDS = {
    "the gradient at the first activation is between 1/100 and 100 times as long as at the last": {
        "gradient": rescue_too_steep
    },
    "the activations stay at sizes between 0.005 and 50": {"activations": rescue_with_a_loud_start},
    "and still differ from input to input": {"spread": rescue_deaf},
    "no two units of a layer start with the same weights, and none with zeros only": {"units": rescue_with_twins},
    "Only numbers change: the layers, the parameter objects (an optimizer may hold them)": {
        "model": rescue_with_new_parameters
    },
}


def rescue_in_single_precision(model):
    for layer in model:
        if isinstance(layer, nn.Linear):
            layer.weight.data = 2**0.5 * torch.randn(layer.weight.shape) / layer.in_features**0.5
            layer.bias.data = torch.zeros(layer.bias.shape)


WRONG.append(rescue_in_single_precision)


def rescue_of_what_learns(model):
    """Starts anew only what an optimizer would train."""
    for layer in model:
        if isinstance(layer, nn.Linear) and layer.weight.requires_grad:
            nn.init.orthogonal_(layer.weight, gain=2**0.5 if any(isinstance(it, nn.ReLU) for it in model) else 1.1)
            nn.init.zeros_(layer.bias)


WRONG.append(said(rescue_of_what_learns, "still vanishing"))


def rescue_of_one_size(model):
    """Takes the width that goes into the first layer for that of all."""
    linear = [layer for layer in model if isinstance(layer, nn.Linear)]
    gain = 2**0.5 if any(isinstance(it, nn.ReLU) for it in model) else 1.1
    for layer in linear:
        nn.init.normal_(layer.weight, std=gain / linear[0].in_features ** 0.5)
        nn.init.zeros_(layer.bias)


WRONG.append(said(rescue_of_one_size, "too much"))
