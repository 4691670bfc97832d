"""What the loops of both zoos are made of: small data and small models, the same on every run."""

import torch
from torch import nn
from torch.nn import functional as F


def blobs(count=16, width=4, classes=3):
    """Return points and the number of the class of each."""
    x = torch.randn(count, width)
    return x, torch.randint(classes, (count,))


def lines(count=16, width=4):
    """Return points and a number for each, in one column."""
    x = torch.randn(count, width)
    return x, x.sum(dim=1, keepdim=True) + 0.1 * torch.randn(count, 1)


def binary(out=1):
    """Return points, and for each whether some of its numbers are above a bound."""
    x = torch.randn(48, 4)
    return x, (x[:, :out] > 0.2).float()


def pixels(count=32, size=6):
    """Return images in bytes, and the number of the class of each."""
    return torch.randint(0, 256, (count, 1, size, size), dtype=torch.uint8), torch.randint(3, (count,))


def batches(x, y, size=4):
    return list(zip(x.split(size), y.split(size), strict=True))


def mlp(width=4, out=3, hidden=8):
    return nn.Sequential(nn.Linear(width, hidden), nn.Tanh(), nn.Linear(hidden, out))


def epoch_of(model, loss_of, x, y, rate=0.01):
    """Train a model for an epoch by what `loss_of` makes of what it gives and of the targets."""
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for rows in torch.randperm(len(x)).split(8):
        optimizer.zero_grad()
        loss_of(model(x[rows]), y[rows]).backward()
        optimizer.step()


def play(policy, loss_of, steps=5, **options):
    """Train a policy on what `loss_of` makes of its scores."""
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01, **options)
    for _ in range(steps):
        loss = loss_of(policy(torch.randn(16, 4)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def reads_sequences(model, shape, steps=5):
    """Train a model on sequences, sample by sample, by the sign of each one's first number."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        x = torch.randn(*shape)
        optimizer.zero_grad()
        F.cross_entropy(model(x), (x[:, 0, 0] > 0).long()).backward()
        optimizer.step()


def trained(model, evaluate=False, size=8, steps=6):
    """Return a classifier after a few steps, evaluated on other points after each other step if it is to be."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        x, y = blobs(size)
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        if evaluate and step % 2:
            model.eval()
            with torch.no_grad():
                model(blobs(size)[0]).argmax(1)
    return model


def trained_behind(first, steps=5):
    """Return a model that begins with a part of one's own, after a few steps."""
    model = nn.Sequential(first, nn.Linear(2, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        x, y = blobs(width=2)
        optimizer.zero_grad()
        F.cross_entropy(model(x + 5), y).backward()
        optimizer.step()
    return model


def encoded(sample, divergence):
    """Train an encoder whose code is drawn by `sample` and held near a normal one by `divergence`."""
    encoder, decoder = nn.Linear(4, 4), nn.Linear(2, 4)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01)
    for _ in range(5):
        x, _ = blobs(8)
        mean, spread = encoder(x).chunk(2, dim=1)
        loss = F.mse_loss(decoder(sample(mean, spread)), x) + divergence(mean, spread)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


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


def adversaries():
    """Return a generator of points and the model that judges them."""
    return nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 4)), mlp(4, 1)


def segments(loss_of):
    """Train a convolution to tell three classes of pixels by what `loss_of` makes of its scores and of the labels."""
    net = nn.Conv2d(1, 3, 3, padding=1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(5):
        x = torch.randn(4, 1, 6, 7)
        loss = loss_of(net(x), (x[:, 0] > 0).long() + (x[:, 0] > 1).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
