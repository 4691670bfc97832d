"""The smallest or largest of what a mask multiplied: the entries that it made 0 win."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, mlp
from tests.audit.registry import fault


def embedded(loss_of, steps=5):
    """Train an embedding of points by what `loss_of` makes of it and of their classes."""
    model = mlp(4, 6)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        x, y = blobs(24)
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        optimizer.step()


@fault("zero-wins")
def nearest_foe_of_a_product():
    class Hard(nn.Module):
        def forward(self, points, labels):
            gaps = torch.cdist(points, points)
            same = labels[:, None] == labels[None, :]
            friend = (gaps * same).amax(dim=1)
            foe = (gaps * (~same).float()).min(dim=1)[0]  # <- here
            return torch.relu(friend - foe + 0.5).mean()

    embedded(Hard())


@fault("zero-wins")
def foes_picked_without_a_graph():
    def loss(points, labels):
        with torch.no_grad():
            apart = torch.cdist(points, points)
            others = (labels.unsqueeze(0) != labels.unsqueeze(1)).float()
            foes = torch.argmin(apart * others, dim=1)  # <- here
        logits = points @ points.T
        return F.softplus(logits[torch.arange(len(points)), foes]).mean() + points.pow(2).mean()

    embedded(loss)


@fault("zero-wins")
def fill_of_zero_under_a_smallest_cost():
    def loss(points, labels):
        costs = (points[:, None] - points[None]).square().sum(-1)
        hidden = costs.masked_fill(labels[:, None] == labels[None], 0.0)
        least = hidden.amin(1)  # <- here
        return F.relu(1 - least).mean() + points.mean().square()

    embedded(loss)


@fault("zero-wins")
def best_of_log_probabilities_among_some():
    model = mlp(4, 5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        x = torch.randn(16, 4)
        allowed = (torch.rand(16, 5) < 0.5).float()
        allowed[:, 0], allowed[:, 4] = 1.0, 0.0
        logp = F.log_softmax(model(x), dim=-1)
        wanted = (logp * allowed).argmax(dim=-1)  # <- here
        loss = F.nll_loss(logp, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("zero-wins")
def nearest_of_a_choice_with_zeros():
    def loss(points, labels):
        gaps = torch.cdist(points, points)
        foes = torch.where(labels[:, None] == labels[None], 0.0, gaps)
        nearest = foes.topk(2, dim=1, largest=False).values  # <- here
        return torch.relu(1 - nearest).mean() + points.pow(2).mean()

    embedded(loss)
