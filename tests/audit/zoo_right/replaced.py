"""Parts that are put in, with an optimizer that is told of them."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, mlp
from tests.audit.registry import right


def _fit(model, optimizer, x, y, steps=5):
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@right
def a_new_head_and_then_its_optimizer():
    network = mlp(out=5)
    _fit(network, torch.optim.Adam(network.parameters(), lr=0.01), *blobs(24, classes=5))
    network[2] = nn.Linear(8, 3)
    _fit(network, torch.optim.Adam(network.parameters(), lr=0.001), *blobs(24))


@right
def a_new_head_as_another_group():
    network = mlp(out=5)
    _fit(network, torch.optim.Adam(network.parameters(), lr=0.01), *blobs(24, classes=5))
    optimizer = torch.optim.Adam(network[0].parameters(), lr=0.001)
    network[2] = nn.Linear(8, 3)
    optimizer.add_param_group({"params": network[2].parameters(), "lr": 0.01})
    _fit(network, optimizer, *blobs(24))
