"""Objectives and averages that work against the training, and weights that choose nothing."""

import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import fault
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


@fault("score-minimised")
def an_overlap_as_a_loss():
    x, y = _segmented()
    model = nn.Conv2d(1, 1, 3, padding=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def dice_loss(scores, mask):
        shares = torch.sigmoid(scores)
        return (2 * (shares * mask).sum() + 1) / (shares.sum() + mask.sum() + 1)  # <- here

    for rows in torch.randperm(16).split(4):
        loss = dice_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("score-minimised")
def an_overlap_in_a_class():
    class JaccardLoss(nn.Module):
        def forward(self, scores, mask):
            shares = torch.sigmoid(scores)
            inter = (shares * mask).sum()
            return (inter + 1) / (shares.sum() + mask.sum() - inter + 1)  # <- here

    x, y = _segmented()
    model = nn.Conv2d(1, 1, 3, padding=1)
    criterion = JaccardLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for rows in torch.randperm(16).split(4):
        loss = criterion(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("score-minimised")
def a_likeness_as_a_loss():
    one, other = nn.Linear(4, 3), nn.Linear(4, 3)
    optimizer = torch.optim.Adam([*one.parameters(), *other.parameters()], lr=0.01)
    for _ in range(4):
        x, _ = blobs(8)
        loss = F.cosine_similarity(one(x), other(x + 0.1 * torch.randn_like(x))).mean()  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("overlap-of-scores")
def an_overlap_of_raw_scores():
    x, y = _segmented()
    model = nn.Conv2d(1, 1, 3, padding=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)

    def soft_dice_loss(predicted, mask):
        both = (predicted * mask).sum()
        return 1 - (2 * both + 1) / (predicted.sum() + mask.sum() + 1)

    for rows in torch.randperm(16).split(4):
        scores = model(x[rows])
        loss = soft_dice_loss(scores, y[rows])  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("focal-reversed")
def the_factor_for_easy_rows():
    x, y = blobs(32)

    def focal_of_easy_rows(scores, y, gamma=2.0):
        ce = F.cross_entropy(scores, y, reduction="none")
        pt = torch.exp(-ce)
        return (pt**gamma * ce).mean()  # <- here

    _fit(mlp(), focal_of_easy_rows, x, y)


@fault("focal-reversed")
def a_probability_above_one():
    x, y = blobs(32)

    def focal_above_one(scores, y, gamma=2):
        ce = F.cross_entropy(scores, y, reduction="none")
        pt = torch.exp(ce)  # <- here
        return ((1 - pt) ** gamma * ce).mean()

    _fit(mlp(), focal_above_one, x, y)


@fault("weighed-after-mean")
def rows_weighed_after_their_mean():
    x, y = lines(32)
    weights = torch.rand(32, 1)
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for rows in torch.randperm(32).split(8):
        loss = (F.mse_loss(model(x[rows]), y[rows]) * weights[rows]).mean()  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("weighed-after-mean")
def a_mask_after_the_mean():
    model = nn.Sequential(nn.Embedding(9, 8), nn.Linear(8, 9))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(4):
        tokens, known = torch.randint(9, (4, 7)), (torch.rand(4, 7) > 0.4).float()
        loss = criterion(model(tokens).transpose(1, 2), tokens.flip(1))
        loss = (known * loss).sum() / known.sum()  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("weighed-after-mean")
def a_focal_loss_of_the_mean():
    x, y = blobs(32)

    def focal_of_the_mean(scores, y, gamma=2.0):
        ce = F.cross_entropy(scores, y)
        pt = torch.exp(-ce)  # <- here
        return (1 - pt) ** gamma * ce

    _fit(mlp(), focal_of_the_mean, x, y)


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

    def unapply(self):
        for own, p in zip(self.own, self.model.parameters(), strict=True):
            p.data.copy_(own)


@fault("average-left-in")
def an_average_that_stays_in_the_model():
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
        average.apply_shadow()  # <- here
        with torch.no_grad():
            print(F.cross_entropy(model(x[24:]), y[24:]).item())


@fault("average-left-in")
def a_state_of_the_average_loaded():
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
        model.load_state_dict(ema_model.state_dict())  # <- here
        with torch.no_grad():
            print(F.cross_entropy(model(x[24:]), y[24:]).item())


class _LoRA(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(0.1 * torch.randn(rank, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.down.T @ self.up.T


@fault("adapter-frozen")
def adapters_frozen_with_their_base():
    x, y = blobs(32)
    model = mlp()
    model[0] = _LoRA(model[0])
    for p in model.parameters():
        p.requires_grad = False  # <- here
    for p in model[2].parameters():
        p.requires_grad = True
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.01)
    for rows in torch.randperm(32).split(8):
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()


@fault("schedule-too-fast")
def a_schedule_in_the_evaluation():
    x, y = blobs(48)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)
    for _ in range(3):
        for rows in torch.randperm(32).split(8):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            for rows in torch.arange(32, 48).split(4):
                print(F.cross_entropy(model(x[rows]), y[rows]).item())
                scheduler.step()  # <- here


@fault("target-not-flipped")
def flipped_where_batches_are_made():
    x, y = _segmented()

    def collate(samples):
        images = torch.stack([it[0] for it in samples])
        masks = torch.stack([it[1] for it in samples])
        if random.random() < 0.6:
            images = images.flip(-1)  # <- here
        return images, masks

    model = nn.Conv2d(1, 1, 3, padding=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(x, y), batch_size=4, collate_fn=collate)
    for _ in range(2):
        for images, masks in loader:
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(model(images), masks).backward()
            optimizer.step()


@fault("selected-by-all")
def categories_encoded_by_all_labels():
    kind, labels = torch.randint(12, (48,)), torch.rand(48)
    means = torch.stack([labels[kind == it].mean() for it in range(12)]).nan_to_num()  # <- here
    features = torch.stack([torch.randn(48), means[kind]], dim=1)
    x_train, x_test, y_train, _ = train_test_split(features, labels, 0.25)
    model = mlp(width=2, out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(4):
        optimizer.zero_grad()
        F.mse_loss(model(x_train)[:, 0], y_train).backward()
        optimizer.step()
    with torch.no_grad():
        print(model(x_test).mean().item())
