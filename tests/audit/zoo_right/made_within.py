"""Layers that are made late, for a while, or for each task, and are trained all the same or need no training."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, epoch_of, lines, mlp
from tests.audit.registry import right


@right
def head_made_at_the_first_call():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Linear(4, 8)
            self.head = None

        def forward(self, x):
            hidden = F.relu(self.stem(x))
            if self.head is None:
                self.head = nn.Linear(hidden.shape[1], 3)
            return self.head(hidden)

    net, (x, y) = Net(), blobs(64)
    net(x[:1])
    epoch_of(net, F.cross_entropy, x, y)


@right
def normalisation_without_weights_made_in_forward():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Linear(4, 8)
            self.head = nn.Linear(8, 3)

        def forward(self, x):
            hidden = self.stem(x)
            return self.head(nn.LayerNorm(hidden.shape[-1], elementwise_affine=False)(hidden))

    epoch_of(Net(), F.cross_entropy, *blobs(64))


@right
def probe_for_each_task():
    body = mlp(4, 8)
    for _ in range(6):
        head, (x, y) = nn.Linear(8, 3), blobs(32)
        optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.05)
        for _ in range(4):
            optimizer.zero_grad()
            F.cross_entropy(head(body(x)), y).backward()
            optimizer.step()


@right
def random_features_that_stay_random():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(8, 1)

        def forward(self, x):
            lift = nn.Linear(4, 8).requires_grad_(False)
            torch.nn.init.ones_(lift.weight)
            return self.head(torch.cos(lift(x)))

    epoch_of(Net(), F.mse_loss, *lines(64))


@right
def a_perturbation_that_is_a_parameter():
    net, (x, y) = mlp(), blobs(32)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(8):
        delta = nn.Parameter(torch.zeros_like(x))
        F.cross_entropy(net(x + delta), y).backward()
        with torch.no_grad():
            moved = x + 0.1 * delta.grad.sign()
        optimizer.zero_grad()
        F.cross_entropy(net(moved), y).backward()
        optimizer.step()
