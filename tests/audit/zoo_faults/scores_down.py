"""Scores that are minimised, and pairs whose scores go by other names."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import mlp
from tests.audit.registry import fault


def iou(a, b):
    lt, rb = torch.max(a[:, :2], b[:, :2]), torch.min(a[:, 2:], b[:, 2:])
    i = (rb - lt).clamp(min=0).prod(1)
    area = (a[:, 2:] - a[:, :2]).clamp(min=0).prod(1)
    other = (b[:, 2:] - b[:, :2]).prod(1)
    return i / (area + other - i + 1e-6)


def corners(x):
    return torch.cat([x[:, :2] - x[:, 2:].exp(), x[:, :2] + x[:, 2:].exp()], 1)


def psnr(a, b):
    return 10 * torch.log10(1.0 / F.mse_loss(a, b))


def ssim(a, b, c1=0.01, c2=0.03):
    ma, mb = a.mean(1), b.mean(1)
    va, vb = a.var(1), b.var(1)
    both = ((a - ma[:, None]) * (b - mb[:, None])).mean(1)
    return ((2 * ma * mb + c1) * (2 * both + c2) / ((ma**2 + mb**2 + c1) * (va + vb + c2))).mean()


def pearson(a, b):
    a, b = a - a.mean(), b - b.mean()
    return (a * b).sum() / (a.norm() * b.norm() + 1e-8)


@fault("score-minimised")
def overlap_of_boxes_as_it_is():
    net = mlp(out=4)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(5):
        x = torch.randn(16, 4)
        boxes = corners(0.5 * x)
        loss = iou(corners(net(x)), boxes).mean()  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("score-minimised")
def peaks_over_noise_as_they_are():
    net = nn.Linear(4, 4)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(5):
        clean = torch.rand(16, 4)
        optimizer.zero_grad()
        loss = psnr(net(clean + 0.1 * torch.randn(16, 4)), clean)  # <- here
        loss.backward()
        optimizer.step()


@fault("score-minimised")
def likeness_of_structures_as_it_is():
    net = nn.Linear(8, 8)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(5):
        clean = torch.rand(16, 8)
        optimizer.zero_grad()
        ssim(net(clean + 0.1 * torch.randn(16, 8)), clean).backward()  # <- here
        optimizer.step()


@fault("score-minimised")
def correlation_as_it_is():
    net = mlp(out=1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(5):
        x = torch.randn(32, 4)
        optimizer.zero_grad()
        score = pearson(net(x)[:, 0], x.sum(1))  # <- here
        score.backward()
        optimizer.step()


def ranked(loss_of):
    users, items = nn.Embedding(10, 4), nn.Embedding(20, 4)
    optimizer = torch.optim.Adam([*users.parameters(), *items.parameters()], lr=0.01)
    for _ in range(6):
        u = torch.randint(10, (16,))
        optimizer.zero_grad()
        loss_of(users(u), items(u), items(torch.randint(20, (16,)))).backward()
        optimizer.step()


@fault("positive-repelled")
def ranking_by_short_names():
    def loss_of(u, pos, neg):
        sp = (u * pos).sum(1)
        sn = (u * neg).sum(1)
        return -F.logsigmoid(sn - sp).mean()  # <- here

    ranked(loss_of)


@fault("positive-repelled")
def softplus_of_short_names():
    def loss_of(u, pos, neg):
        a = (u * pos).sum(1)
        b = (u * neg).sum(1)
        return F.softplus(a - b).mean()  # <- here

    ranked(loss_of)


@fault("positive-repelled")
def hinge_of_short_names():
    def loss_of(u, pos, neg):
        x1 = (u * pos).sum(-1)
        x2 = (u * neg).sum(-1)
        return torch.clamp(1 - (x2 - x1), min=0).mean()  # <- here

    ranked(loss_of)
