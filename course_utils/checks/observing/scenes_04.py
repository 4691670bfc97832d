"""Losses on shared trunks, loops and models for lesson 04, made from a case."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.observing.batches import Batch
from course_utils.checks.observing.models import numbers, seeded

# Several losses and their leaves.


def losses_and_leaves(case: Case) -> tuple[list[torch.Tensor], dict[str, torch.Tensor]]:
    """Return the losses of a scene and every leaf behind them, by name."""
    seed = case.given["seed"]
    w, v, u = (numbers(seed + n, *shape).requires_grad_() for n, shape in enumerate([(4, 3), (3,), (3, 2)]))
    x = numbers(seed + 5, 5, 4)
    h = (x @ w).tanh()
    match case.given["scene"]:
        case "two heads":
            return [(h * v).square().mean(), (h @ u).exp().mean()], {"w": w, "v": v, "u": u}
        case "a short and a long branch":
            long = (h * v).sin().exp() * h
            return [h.sum(), long.mean(), (h * h).mean()], {"w": w, "v": v}
        case "separate graphs":
            return [(h @ u).exp().mean(), (v * v).sum().exp()], {"w": w, "u": u, "v": v}
        case "one loss, listed twice":
            loss = (h * v).exp().mean()
            return [loss, (h @ u).mean(), loss], {"w": w, "v": v, "u": u}
        case "one loss is part of another":
            first = (h * v).exp().mean()
            return [first, first * (h @ u).mean()], {"w": w, "v": v, "u": u}
    loss = (h * v).square().mean()  # a single loss
    return [loss], {"w": w, "v": v}


# A trunk and losses on it.


class Trunk(nn.Module):
    """Two layers and a way past the second, so that gradients meet on their way."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h: torch.Tensor = self.first(x).tanh()
        more: torch.Tensor = self.second(h).sigmoid()
        return h + more


def trunk_and_losses(case: Case) -> tuple[nn.Module, torch.Tensor, list[torch.Tensor], list[nn.Parameter]]:
    """Return a trunk, its result, some losses on it, and the parameters of their heads."""
    seed, count = case.given["seed"], case.given["losses"]
    trunk = seeded(Trunk(), seed)
    h = trunk(numbers(seed + 1, 5, 4))
    widths = [3, 2, 5][:count]
    heads = [seeded(nn.Linear(6, width), seed + 10 + width) for width in widths]
    losses = [head(h).sin().square().mean() for head in heads]
    return trunk, h, losses, [parameter for head in heads for parameter in head.parameters()]


# Loops.


def scaled_classifier(case: Case) -> tuple[nn.Module, torch.Tensor, torch.optim.Optimizer, list[Batch]]:
    """Return a small classifier, the logarithm of a scale, an optimizer for both, and batches."""
    seed, sizes = case.given["seed"], case.given["sizes"]
    model = seeded(nn.Sequential(nn.Linear(4, 7), nn.Tanh(), nn.Linear(7, 3)), seed)
    log_scale = torch.tensor(case.given["start"], requires_grad=True)
    optimizer = torch.optim.SGD([*model.parameters(), log_scale], lr=0.4, momentum=0.5)
    batches = [(numbers(seed + n, size, 4), torch.arange(size) % 3) for n, size in enumerate(sizes, 1)]
    return model, log_scale, optimizer, batches


State = tuple[torch.Tensor, torch.Tensor]


def recurrent(case: Case) -> tuple[nn.LSTM, nn.Linear, torch.optim.Optimizer, list[Batch], State]:
    """Return an LSTM, a readout, an optimizer for both, chunks of one sequence, and a state to start from."""
    seed, lengths = case.given["seed"], case.given["lengths"]
    lstm, readout = nn.LSTM(3, 5, batch_first=True), nn.Linear(5, 2)
    seeded(lstm, seed)
    seeded(readout, seed + 1)
    optimizer = torch.optim.SGD([*lstm.parameters(), *readout.parameters()], lr=0.3)
    chunks = [(numbers(seed + n, 2, t, 3), numbers(seed - n, 2, t, 2)) for n, t in enumerate(lengths, 1)]
    return lstm, readout, optimizer, chunks, (numbers(seed + 50, 1, 2, 5), numbers(seed + 51, 1, 2, 5))


# Two heads with an optimizer each.


def two_headed(case: Case) -> tuple[nn.Module, list[nn.Module], list[torch.optim.Optimizer], list[Any]]:
    """Return a trunk, two heads, an optimizer for the trunk and each head, and batches of inputs and two targets."""
    seed = case.given["seed"]
    trunk: nn.Module = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 5), nn.Tanh())
    heads: list[nn.Module] = [nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, n)) for n in (2, 3)]
    for number, part in enumerate([trunk, *heads]):
        seeded(part, seed + number)
    optimizers: list[torch.optim.Optimizer] = [
        torch.optim.SGD([*trunk.parameters(), *heads[0].parameters()], lr=0.3, momentum=0.5),
        torch.optim.Adam([*trunk.parameters(), *heads[1].parameters()], lr=0.05),
    ]
    batches = [
        (numbers(seed + n, size, 4), [numbers(seed + n, size, 2), numbers(seed - n, size, 3)])
        for n, size in enumerate(case.given["sizes"], 1)
    ]
    return trunk, heads, optimizers, batches


class Head(nn.Module):
    """A hidden layer of its own, a vector that may be another head's, too, and a loss."""

    def __init__(self, width: int, weights: nn.Parameter) -> None:
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(6, width), nn.Tanh())
        self.weights = weights

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        means: torch.Tensor = self.hidden(h).mean(1)
        return ((means * self.weights).exp() - 1).square().mean()


def many_headed(case: Case) -> tuple[nn.Module, list[nn.Module], torch.Tensor]:
    """Return a trunk, heads that return losses and partly share a vector, and inputs."""
    seed, widths = case.given["seed"], case.given["widths"]
    trunk: nn.Module = seeded(Trunk(), seed)
    shared, own = nn.Parameter(numbers(seed + 2, 5)), nn.Parameter(numbers(seed + 3, 5))
    heads: list[nn.Module] = [Head(width, own if n == 1 else shared) for n, width in enumerate(widths)]
    for number, head in enumerate(heads):
        seeded(head, seed + 20 + number)
    inputs = numbers(seed + 1, 5, 4).requires_grad_(case.given["inputs need grad"])
    for number, parameter in enumerate([*trunk.parameters(), *(p for head in heads for p in head.parameters())]):
        if number % 3 == 0:  # some hold a gradient from before
            parameter.grad = numbers(seed + number, *parameter.shape)
    return trunk, heads, inputs
