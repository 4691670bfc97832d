"""Parts that are put in after the optimizer was made, when another optimizer had trained the old ones."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, mlp
from tests.audit.registry import fault


def _fit(model, optimizer, x, y, steps=5):
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


class Classifier(nn.Module):
    """A body and a head, as for a second task."""

    def __init__(self, classes):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, classes)

    def forward(self, x):
        return self.head(self.body(x).tanh())


@fault("not-in-optimizer")
def a_head_for_the_second_task():
    net = Classifier(5)
    _fit(net, torch.optim.Adam(net.parameters(), lr=0.01), *blobs(24, classes=5))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
    net.head = nn.Linear(8, 3)  # <- here
    _fit(net, optimizer, *blobs(24))


@fault("not-in-optimizer")
def a_last_layer_put_in_by_its_number():
    network = mlp(out=6)
    first = torch.optim.SGD(network.parameters(), lr=0.1)
    _fit(network, first, *blobs(24, classes=6))
    second = torch.optim.SGD(network.parameters(), lr=0.05)
    network[2] = nn.Linear(8, 3)  # <- here
    _fit(network, second, *blobs(24))
