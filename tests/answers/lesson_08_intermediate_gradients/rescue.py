"""Right and wrong answers to `rescue`."""

import torch
from torch import nn

from tests.answers.said import said


def rescue_by_kaiming(model):
    relu = any(isinstance(module, nn.ReLU) for module in model.modules())
    for module in model.modules():
        if isinstance(module, nn.Linear):
            if relu:
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            else:
                nn.init.xavier_normal_(module.weight, gain=nn.init.calculate_gain("tanh"))
            nn.init.zeros_(module.bias)


def rescue_by_orthogonal(model):
    for layer, after in zip(model, [*model[1:], None], strict=True):
        if isinstance(layer, nn.Linear):
            nn.init.orthogonal_(layer.weight, gain=2**0.5 if isinstance(after, nn.ReLU) else 1.3)
            layer.bias.data.zero_()


def rescue_by_scaling(model):
    """PyTorch's start has a variance of 1 / (3 n): this only scales it, and halves the biases."""
    relu = any(type(module).__name__ == "ReLU" for module in model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_((6 if relu else 4) ** 0.5 if parameter.dim() == 2 else 0.5)


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


RIGHT = [rescue_by_kaiming, rescue_by_orthogonal, rescue_by_scaling]

MISCONCEIVED = {
    "still vanishing": rescue_with(lambda weight: nn.init.normal_(weight, std=0.02)),
    "too much": rescue_with(nn.init.normal_),
    "new parameters": rescue_with_new_parameters,
}

WRONG = [
    rescue_by_hooks,
    rescue_by_new_layers,
    rescue_with_ones,
    rescue_deaf,
    rescue_with(nn.init.eye_),
    said(rescue_with(nn.init.xavier_normal_), "still vanishing"),
    rescue_with(nn.init.zeros_),
    said(lambda model: model, "still vanishing"),
    lambda model: model.eval(),
    lambda model: model.requires_grad_(False),
]
