"""Errors that each step makes larger."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import fault


@fault("loss-climbs")
def bare_weight_moved_along_its_slope():
    x, y = lines(64)
    w = torch.zeros(4, 1, requires_grad=True)
    for _ in range(20):
        loss = ((x @ w - y) ** 2).mean()
        (g,) = torch.autograd.grad(loss, w)
        with torch.no_grad():
            w += 0.01 * g  # <- here


@fault("loss-climbs")
def parameters_moved_by_the_gradients_that_they_hold():
    net, (x, y) = mlp(), blobs(32)
    for _ in range(12):
        net.zero_grad()
        F.cross_entropy(net(x), y).backward()
        for p in net.parameters():
            p.data.add_(p.grad, alpha=0.1)  # <- here


@fault("loss-climbs")
def pairs_of_parameters_and_slopes():
    net, (x, y) = mlp(out=1), lines(32)

    def step(rate):
        loss = F.mse_loss(net(x), y)
        slopes = torch.autograd.grad(loss, list(net.parameters()))
        with torch.no_grad():
            for p, slope in zip(net.parameters(), slopes, strict=True):
                p.copy_(p + rate * slope)  # <- here
        return loss.item()

    for _ in range(12):
        step(0.05)


@fault("loss-climbs")
def new_leaf_in_each_round():
    x, y = lines(32)
    w, b = torch.zeros(4, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
    for _ in range(12):
        err = (y - x @ w - b).pow(2).sum() / len(x)
        err.backward()
        b = (b + 0.02 * b.grad).detach().requires_grad_()
        w = (w + 0.02 * w.grad).detach().requires_grad_()  # <- here


@fault("loss-climbs")
def optimizer_of_ones_own_with_momentum():
    class Momentum:
        def __init__(self, params, rate):
            self.params, self.rate = list(params), rate
            self.kept = [torch.zeros_like(p) for p in self.params]

        @torch.no_grad()
        def step(self):
            for p, kept in zip(self.params, self.kept, strict=True):
                kept.mul_(0.5).add_(p.grad)
                p.add_(kept, alpha=self.rate)  # <- here
                p.grad = None

    net, (x, y) = mlp(), blobs(32)
    optimizer = Momentum(net.parameters(), 0.05)
    for _ in range(14):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()


@fault("loss-climbs")
def optimizer_told_to_maximize():
    net, (x, y) = mlp(), blobs(32)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, maximize=True)  # <- here
    for _ in range(14):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()


@fault("loss-climbs")
def adam_told_to_maximize_an_error_in_batches():
    net = mlp(out=1)
    optimizer = torch.optim.AdamW(
        net.parameters(),
        lr=0.01,
        maximize=True,  # <- here
    )
    criterion = nn.MSELoss()
    for _ in range(14):
        x, y = lines(16)
        optimizer.zero_grad()
        criterion(net(x), y).backward()
        optimizer.step()


@fault("loss-climbs")
def minus_before_a_cross_entropy():
    net, (x, y) = mlp(), blobs(32)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(14):
        optimizer.zero_grad()
        loss = -F.cross_entropy(net(x), y)  # <- here
        loss.backward()
        optimizer.step()


@fault("loss-climbs")
def minus_before_a_mean_of_squares():
    net, (x, y) = nn.Linear(4, 1), lines(32)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(14):
        optimizer.zero_grad()
        loss = (-((y - net(x)) ** 2)).mean()  # <- here
        loss.backward()
        optimizer.step()
