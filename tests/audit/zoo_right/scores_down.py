"""Scores that are turned round before they are minimised, and pairs whose scores go by other names."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import mlp
from tests.audit.registry import right
from tests.audit.zoo_faults.scores_down import corners, iou, pearson, ranked, ssim


@right
def what_an_overlap_of_boxes_lacks():
    net = mlp(out=4)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(5):
        x = torch.randn(16, 4)
        loss = (1 - iou(corners(net(x)), corners(0.5 * x))).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def negative_peaks_over_noise():
    def psnr(a, b):
        return 10 * torch.log10(F.mse_loss(a, b))  # smaller the better

    net = nn.Linear(4, 4)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(5):
        clean = torch.rand(16, 4)
        optimizer.zero_grad()
        loss = psnr(net(clean + 0.1 * torch.randn(16, 4)), clean)
        loss.backward()
        optimizer.step()


@right
def what_structures_lack_of_likeness():
    def similarity(a, b):
        return 1.0 - F.cosine_similarity(a, b).mean()

    net = nn.Linear(8, 8)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(5):
        clean = torch.rand(16, 8)
        optimizer.zero_grad()
        out = net(clean + 0.1 * torch.randn(16, 8))
        loss = (1 - ssim(out, clean)) / 2
        loss.backward()
        similarity(net(clean), clean).backward()
        optimizer.step()


@right
def correlation_with_a_minus():
    net = mlp(out=1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(5):
        x = torch.randn(32, 4)
        optimizer.zero_grad()
        score = pearson(net(x)[:, 0], x.sum(1))
        (-score).backward()
        optimizer.step()


@right
def ranking_by_short_names_the_right_way():
    def loss_of(u, pos, neg):
        sp = (u * pos).sum(1)
        sn = (u * neg).sum(1)
        return -F.logsigmoid(sp - sn).mean()

    ranked(loss_of)


@right
def distances_by_short_names():
    def loss_of(u, pos, neg):
        a = (u - pos).pow(2).sum(1)
        b = (u - neg).pow(2).sum(1)
        return F.relu(a - b + 0.5).mean()

    ranked(loss_of)


@right
def energies_by_short_names():
    def loss_of(u, pos, neg):
        a = -(u * pos).sum(1)
        b = -(u * neg).sum(1)
        return F.softplus(a - b).mean()

    ranked(loss_of)
