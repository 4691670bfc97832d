"""Products with masks of which the zeros may win, or cannot."""

import torch
from torch.nn import functional as F

from tests.audit.parts import mlp
from tests.audit.registry import right
from tests.audit.zoo_faults.hidden_zeros import embedded


@right
def farthest_friend_of_a_product():
    def loss(points, labels):
        gaps = torch.cdist(points, points)
        same = (labels[:, None] == labels[None]).float()
        friend = (gaps * same).max(dim=1).values
        foe = (gaps + 1e6 * same).min(dim=1).values
        return F.relu(friend - foe + 0.5).mean()

    embedded(loss)


@right
def nearest_foe_behind_a_fill():
    def loss(points, labels):
        gaps = torch.cdist(points, points)
        same = labels[:, None] == labels[None]
        foe = gaps.masked_fill(same, float("inf")).min(dim=1).values
        return F.relu(1 - foe).mean()

    embedded(loss)


@right
def worst_violation_with_a_floor():
    def loss(points, labels):
        near = -torch.cdist(points, points) - 1
        other = (labels[:, None] != labels[None]).float()
        worst = (near * other).max(dim=1).values
        return F.relu(worst + 0.0).mean() + points.pow(2).mean()

    embedded(loss)


@right
def most_likely_of_those_allowed():
    model = mlp(4, 5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        x, allowed = torch.randn(16, 4), (torch.rand(16, 5) < 0.5).float()
        allowed[:, 0], allowed[:, 4] = 1.0, 0.0
        scores = model(x)
        action = (scores.softmax(-1) * allowed).argmax(dim=-1)
        both = (allowed * (torch.rand(16, 5) < 0.5)).amin(dim=1)
        loss = (F.cross_entropy(scores, action, reduction="none") * (1 + both)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def dropped_by_hand_and_pooled():
    def loss(points, labels):
        kept = (torch.rand_like(points) < 0.7).float()
        pooled = (points.relu() * kept).amax(dim=1)
        low = (points.tanh() * kept).min(dim=1).values
        return (pooled - labels.float()).square().mean() + low.square().mean()

    embedded(loss)
