"""Right loops with names that nobody reads, and with generators."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import right


class Signs(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            moved = []
            for weight in group["params"]:
                weight = weight.data
                weight.add_(group["params"][0].new_ones(()) * 0)
                moved.append(weight)
            for weight, held in zip(moved, group["params"], strict=True):
                weight.sub_(group["lr"] * held.grad.sign())


@right
def optimizer_of_ones_own_that_writes_through_a_name():
    x, y = blobs()
    model = mlp()
    optimizer = Signs(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def chosen(model, name):
    weights = model.parameters()
    if name == "adam":
        return torch.optim.Adam(weights, lr=0.01)
    return torch.optim.SGD(weights, lr=0.1)


def either(model, momentum):
    weights = model.parameters()
    if momentum:
        name = "SGD with momentum"
        optimizer = torch.optim.SGD(weights, lr=0.1, momentum=momentum)
    else:
        name = "SGD"
        optimizer = torch.optim.SGD(weights, lr=0.1)
    return optimizer, name


@right
def generator_that_one_of_two_branches_takes():
    x, y = blobs()
    model = mlp()
    optimizer, (other, _) = chosen(model, "sgd"), either(model, 0.9)
    for _ in range(6):
        for one in (optimizer, other):
            one.zero_grad()
            F.cross_entropy(model(x), y).backward()
            one.step()


@right
def list_gone_through_twice():
    x, y = blobs()
    model = mlp()
    weights = list(model.parameters())
    optimizer = torch.optim.SGD(weights, lr=0.1)
    for _ in range(6):
        loss = F.cross_entropy(model(x), y) + 0.01 * sum(it.abs().sum() for it in weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def one_round(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@right
def losses_that_nobody_reads():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        last = one_round(model, optimizer, x, y)  # noqa: F841


class Pair(nn.Module):
    """Tied where one wants it, and tied again after a new start."""

    def __init__(self, tied):
        super().__init__()
        self.read, self.write = nn.Linear(4, 4), nn.Linear(4, 4)
        if tied:
            self.write.weight = self.read.weight
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)
        self.last.weight = self.first.weight
        self.first.weight = nn.Parameter(0.5 * torch.eye(4) + 0.1)
        self.last.weight = self.first.weight

    def forward(self, x):
        return self.last(self.first(self.write(self.read(x).tanh())).tanh())


@right
def ties_that_are_wanted_or_renewed():
    x, _ = lines()
    pair = Pair(tied=False)
    optimizer = torch.optim.Adam(pair.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(pair(x), x).backward()
        optimizer.step()
