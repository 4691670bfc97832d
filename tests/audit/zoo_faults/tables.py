"""Embeddings that are asked with other numbers than their own."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.registry import fault


def rated(model, steps=5):
    """Train a model of users and items on ratings."""
    user, item = torch.randint(6, (40,)), torch.randint(6, (40,))
    rating = torch.randn(40)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        F.mse_loss(model(user, item), rating).backward()
        optimizer.step()


@fault("other-table")
def bias_of_items_by_users():
    class Factors(nn.Module):
        def __init__(self):
            super().__init__()
            self.user, self.item = nn.ModuleList([nn.Embedding(6, 2)]), nn.ModuleList([nn.Embedding(6, 2)])
            self.user_bias = nn.Embedding(6, 1)
            self.item_bias = nn.Embedding(6, 1)

        def forward(self, user, item):
            product = (self.user[0](user) * self.item[0](item)).sum(1)
            return product + (self.user_bias(user) + self.item_bias(user)).squeeze(1)  # <- here

    rated(Factors())


@fault("other-table")
def movies_asked_by_the_numbers_of_users():
    class Towers(nn.Module):
        def __init__(self):
            super().__init__()
            self.user_emb = nn.Embedding(6, 3)
            self.movie_emb = nn.Embedding(6, 3)

        def forward(self, user_ids, movie_ids):
            u = self.user_emb(user_ids)
            v = self.movie_emb(user_ids)  # <- here
            return (u * v).sum(dim=1) + 0 * movie_ids

    rated(Towers())
