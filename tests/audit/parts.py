"""What the loops of both zoos are made of: small data and small models, the same on every run."""

import torch
from torch import nn


def blobs(count=16, width=4, classes=3):
    """Return points and the number of the class of each."""
    x = torch.randn(count, width)
    return x, torch.randint(classes, (count,))


def lines(count=16, width=4):
    """Return points and a number for each, in one column."""
    x = torch.randn(count, width)
    return x, x.sum(dim=1, keepdim=True) + 0.1 * torch.randn(count, 1)


def batches(x, y, size=4):
    return list(zip(x.split(size), y.split(size), strict=True))


def mlp(width=4, out=3, hidden=8):
    return nn.Sequential(nn.Linear(width, hidden), nn.Tanh(), nn.Linear(hidden, out))


class Dropping(nn.Module):
    """A classifier that behaves differently in training."""

    def __init__(self, width=4, out=3, hidden=8):
        super().__init__()
        self.inner = nn.Linear(width, hidden)
        self.norm = nn.BatchNorm1d(hidden)
        self.drop = nn.Dropout(0.3)
        self.outer = nn.Linear(hidden, out)

    def forward(self, x):
        return self.outer(self.drop(self.norm(self.inner(x)).relu()))
