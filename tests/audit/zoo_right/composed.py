"""Overlaps, focal losses, weights and averages as they should be."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import right
from tests.audit.selecting import train_test_split


def _segmented(count=16):
    x = torch.rand(count, 1, 6, 6)
    return x, (x > 0.6).float()


def _fit(model, loss_of, x, y, rounds=2, size=4):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(rounds):
        for rows in torch.randperm(len(x)).split(size):
            loss = loss_of(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@right
def an_overlap_taken_from_one():
    x, y = _segmented()

    def dice_score(scores, mask):
        shares = torch.sigmoid(scores)
        return (2 * (shares * mask).sum() + 1) / (shares.sum() + mask.sum() + 1)

    def dice_loss(scores, mask):
        return 1 - dice_score(scores, mask)

    model = nn.Conv2d(1, 1, 3, padding=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for rows in torch.randperm(16).split(4):
        scores = model(x[rows])
        loss = F.binary_cross_entropy_with_logits(scores, y[rows]) + dice_loss(scores, y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(dice_score(scores.detach(), y[rows]).item())


@right
def an_overlap_turned_where_it_is_used():
    x, y = _segmented()

    def iou(shares, mask):
        inter = (shares * mask).sum()
        return (inter + 1) / (shares.sum() + mask.sum() - inter + 1)

    model = nn.Sequential(nn.Conv2d(1, 1, 3, padding=1), nn.Sigmoid())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for rows in torch.randperm(16).split(4):
        loss = 1.0 - iou(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def likeness_and_its_penalty():
    one, other = nn.Linear(4, 3), nn.Linear(4, 3)
    optimizer = torch.optim.Adam([*one.parameters(), *other.parameters()], lr=0.01)
    for _ in range(4):
        x, _ = blobs(8)
        a, b = one(x), other(x)
        loss = F.mse_loss(a + b, x[:, :3]) + 0.1 * F.cosine_similarity(a, b).abs().mean()
        loss = loss - 0.1 * F.cosine_similarity(a, x[:, :3]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def a_focal_loss_by_rows():
    x, y = blobs(32)

    def focal_loss(scores, y, gamma=2.0):
        ce = F.cross_entropy(scores, y, reduction="none")
        pt = torch.exp(-ce)
        return ((1 - pt) ** gamma * ce).mean()

    _fit(mlp(), focal_loss, x, y)


@right
def a_focal_loss_by_a_logarithm():
    x, y = blobs(32)

    def focal_by_logarithm(scores, y, gamma=2.0):
        log_pt = F.log_softmax(scores, dim=1).gather(1, y[:, None])[:, 0]
        pt = log_pt.exp()
        return -((1 - pt).pow(gamma) * log_pt).mean()

    _fit(mlp(), focal_by_logarithm, x, y)


@right
def rows_weighed_before_their_mean():
    x, y = lines(32)
    weights, tasks = torch.rand(32, 1), torch.tensor([1.0, 0.3])
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for rows in torch.randperm(32).split(8):
        out = model(x[rows])
        fit = (F.mse_loss(out, y[rows], reduction="none") * weights[rows]).mean()
        loss = (tasks * torch.stack([fit, out.square().mean()])).sum() + 0.1 * F.l1_loss(out, y[rows]) * torch.tensor(
            2.0
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class _Average:
    def __init__(self, model, decay=0.9):
        self.model, self.decay = model, decay
        self.shadow = [p.detach().clone() for p in model.parameters()]
        self.own = []

    def follow(self):
        for mean, p in zip(self.shadow, self.model.parameters(), strict=True):
            mean.lerp_(p.detach(), 1 - self.decay)

    def apply_shadow(self):
        self.own = [p.detach().clone() for p in self.model.parameters()]
        for mean, p in zip(self.shadow, self.model.parameters(), strict=True):
            p.data.copy_(mean)

    def put_back(self):
        for own, p in zip(self.own, self.model.parameters(), strict=True):
            p.data.copy_(own)


@right
def an_average_put_in_and_taken_out():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    average = _Average(model)
    for _ in range(3):
        for rows in torch.randperm(24).split(8):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
            average.follow()
        average.apply_shadow()
        with torch.no_grad():
            print(F.cross_entropy(model(x[24:]), y[24:]).item())
        average.put_back()


@right
def an_average_loaded_when_all_is_done():
    x, y = blobs(32)
    model, ema_model = mlp(), mlp()
    ema_model.load_state_dict(model.state_dict())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        for rows in torch.randperm(24).split(8):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
            with torch.no_grad():
                for mean, p in zip(ema_model.parameters(), model.parameters(), strict=True):
                    mean.lerp_(p, 0.1)
    model.load_state_dict(ema_model.state_dict())
    with torch.no_grad():
        print(F.cross_entropy(model(x[24:]), y[24:]).item())


class _LoRA(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(0.1 * torch.randn(rank, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.down.T @ self.up.T


@right
def adapters_that_learn_beside_their_base():
    x, y = blobs(32)
    model = mlp()
    model[0] = _LoRA(model[0])
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.01)
    for rows in torch.randperm(32).split(8):
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()


@right
def categories_encoded_by_the_training_part():
    kind, labels = torch.randint(6, (48,)), torch.rand(48)
    kind_train, kind_test, y_train, _ = train_test_split(kind, labels, 0.25)
    means = torch.stack([y_train[kind_train == it].mean() for it in range(6)]).nan_to_num()
    x_train, x_test = means[kind_train][:, None], means[kind_test][:, None]
    model = mlp(width=1, out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(4):
        optimizer.zero_grad()
        F.mse_loss(model(x_train), y_train[:, None]).backward()
        optimizer.step()
    with torch.no_grad():
        print(model(x_test).mean().item())


@right
def a_focal_loss_by_the_share_that_is_wrong():
    x, y = blobs(32, classes=2)

    def focal_by_the_wrong_share(scores, y, gamma=2.0):
        p, target = scores[:, 0].sigmoid(), y.float()
        pt = (1 - p) * target + p * (1 - target)
        return (pt.pow(gamma) * F.binary_cross_entropy_with_logits(scores[:, 0], target, reduction="none")).mean()

    _fit(mlp(out=1), focal_by_the_wrong_share, x, y)


@right
def a_score_of_the_mean_weight():
    x, y = lines(32)
    weight = nn.Parameter(torch.randn(6))
    optimizer = torch.optim.Adam([weight], lr=0.01)
    for rows in torch.randperm(32).split(8):
        loss = (weight.mean() * x[rows, :1] - y[rows]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
