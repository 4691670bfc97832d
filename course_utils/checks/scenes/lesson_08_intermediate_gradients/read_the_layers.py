"""Six networks of eight layers, five of them with one fault each, and the repairs to try on them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.functional import cross_entropy

LAYERS, WIDTH, CLASSES = 8, 32, 4

_Activation = Callable[[torch.Tensor], torch.Tensor]


class Deep(nn.Module):
    """Layers of one width, each followed by an activation, and a last layer that gives the scores."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(seed)
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH, dtype=torch.float64) for _ in range(LAYERS))
        self.scores = nn.Linear(WIDTH, CLASSES, dtype=torch.float64)
        self.activation: _Activation = torch.tanh
        self.cut_before: int | None = None
        with torch.no_grad():
            for layer in (*self.layers, self.scores):
                size = layer.weight.shape
                layer.weight.copy_(1.2 * torch.randn(size, generator=random, dtype=torch.float64) / WIDTH**0.5)
                layer.bias.zero_()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for number, layer in enumerate(self.layers, start=1):
            x = self.activation(layer(x.detach() if number == self.cut_before else x))
        scores: torch.Tensor = self.scores(x)
        return scores


def _linear(net: Deep, number: int) -> nn.Linear:
    layer = net.layers[number - 1]
    assert isinstance(layer, nn.Linear)
    return layer


def networks() -> dict[str, Deep]:
    """Return the six networks of the picture, the same on every call."""
    nets = {f"net_{name}": Deep(seed) for seed, name in enumerate("123456")}
    nets["net_1"].activation = torch.sigmoid
    _linear(nets["net_2"], 4).weight.requires_grad_(False)
    nets["net_4"].activation = torch.relu
    nets["net_5"].cut_before = 4
    with torch.no_grad():
        for layer in nets["net_4"].layers:
            assert isinstance(layer, nn.Linear)
            layer.weight.mul_(2**0.5 / 1.2)
            layer.bias.fill_(0.1)
        _linear(nets["net_4"], 5).bias.fill_(-30)
        _linear(nets["net_6"], 3).weight.mul_(0.001)
    return nets


def sizes(net: Deep) -> list[float | None]:
    """Return the norm of each layer's `weight.grad` after one pass; None where `weight.grad` is None."""
    random = torch.Generator().manual_seed(100)
    x = torch.randn(64, WIDTH, generator=random, dtype=torch.float64)
    targets = torch.randint(CLASSES, (64,), generator=random)
    net.zero_grad()
    cross_entropy(net(x), targets).backward()
    gradients = [_linear(net, number).weight.grad for number in range(1, LAYERS + 1)]
    return [None if gradient is None else float(gradient.norm()) for gradient in gradients]


def _take_the_cut_out(net: Deep) -> Deep:
    net.cut_before = None
    return net


def _use_tanh(net: Deep) -> Deep:
    net.activation = torch.tanh
    return net


@torch.no_grad()
def _enlarge_small_weights(net: Deep) -> Deep:
    for layer in net.layers:
        assert isinstance(layer, nn.Linear)
        if layer.weight.std() < 0.1 / WIDTH**0.5:
            layer.weight.div_(layer.weight.std() * WIDTH**0.5)
    return net


@torch.no_grad()
def _clear_biases(net: Deep) -> Deep:
    for layer in net.layers:
        assert isinstance(layer, nn.Linear)
        layer.bias.zero_()
    return net


REPAIRS: dict[str, Callable[[Deep], Deep]] = {
    "A": lambda net: net,
    "B": lambda net: net.requires_grad_(True),
    "C": _take_the_cut_out,
    "D": _clear_biases,
    "E": _enlarge_small_weights,
    "F": _use_tanh,
}
