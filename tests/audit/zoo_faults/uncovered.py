"""Losses over all rows, where a mask says which are for the training."""

from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.registry import fault


def network(nodes=30, seed=0):
    """Return a smoothing among nodes, their features and classes, and which of them are for the training."""
    draw = torch.Generator().manual_seed(seed)
    y = torch.arange(nodes) % 3
    near = ((y[:, None] == y) & (torch.rand(nodes, nodes, generator=draw) < 0.4)).float() + torch.eye(nodes)
    x = torch.randn(nodes, 5, generator=draw) + F.one_hot(y, 5)
    return near / near.sum(1, keepdim=True), x, y, torch.rand(nodes, generator=draw) < 0.4


class Smooth(nn.Module):
    """Classifies nodes by what is near them."""

    def __init__(self, out=3):
        super().__init__()
        self.inner, self.outer = nn.Linear(5, 8), nn.Linear(8, out)

    def forward(self, near, x):
        return near @ self.outer(torch.relu(near @ self.inner(x)))


@fault("mask-forgotten")
def a_loss_over_all_nodes():
    near, x, y, train = network()
    model = Smooth()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(6):
        optimizer.zero_grad()
        out = model(near, x)
        F.cross_entropy(out, y).backward()  # <- here
        optimizer.step()
    with torch.no_grad():
        guess = model(near, x).argmax(1)
        print([(guess[m] == y[m]).float().mean().item() for m in (train, ~train)])


@fault("mask-forgotten")
def hits_of_all_nodes_of_which_a_mask_takes_some():
    near, x, y, train_mask = network()
    test_mask = ~train_mask
    model = Smooth()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(near, x), y).backward()  # <- here
        optimizer.step()
        with torch.no_grad():
            right = (model(near, x).argmax(1) == y).float()
        print(right[train_mask].mean().item(), right[test_mask].mean().item())


@fault("mask-forgotten")
def a_graph_with_masks_of_its_own():
    near, x, y, train_mask = network()
    data = SimpleNamespace(near=near, x=x, y=y, train_mask=train_mask, test_mask=~train_mask)
    model, criterion = Smooth(), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

    def accuracy(mask):
        with torch.no_grad():
            hits = model(data.near, data.x).argmax(1)[mask] == data.y[mask]
        return hits.float().mean().item()

    for _ in range(6):
        optimizer.zero_grad()
        loss = criterion(model(data.near, data.x), data.y)  # <- here
        loss.backward()
        optimizer.step()
        print(accuracy(data.test_mask))


@fault("mask-forgotten")
def all_places_where_some_are_for_the_training():
    near, x, y, _ = network()
    order = torch.randperm(len(y))
    idx_train, idx_test = order[:12], order[12:]
    model = Smooth()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(6):
        out = model(near, x)
        loss = F.nll_loss(out.log_softmax(1), y)  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print((out.detach()[idx_test].argmax(1) == y[idx_test]).float().mean().item(), len(idx_train))


@fault("mask-forgotten")
def a_table_of_ratings():
    ratings = torch.randn(8, 2) @ torch.randn(2, 9)
    train_mask = torch.rand(8, 9) < 0.6
    rows, columns = nn.Parameter(torch.randn(8, 2)), nn.Parameter(torch.randn(9, 2))
    optimizer = torch.optim.Adam([rows, columns], lr=0.05)
    for _ in range(8):
        told = rows @ columns.T
        loss = F.mse_loss(told, ratings)  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print((told[~train_mask] - ratings[~train_mask]).square().mean().item())
