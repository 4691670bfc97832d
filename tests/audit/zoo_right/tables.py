"""Embeddings that several things are asked of on purpose."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.registry import right
from tests.audit.zoo_faults.tables import rated


@right
def each_table_by_its_own():
    class Factors(nn.Module):
        def __init__(self):
            super().__init__()
            self.user = nn.Embedding(6, 2)
            self.item = nn.Embedding(6, 2)
            self.item_bias = nn.Embedding(6, 1)

        def forward(self, user, item):
            return (self.user(user) * self.item(item)).sum(1) + self.item_bias(item).squeeze(1)

    rated(Factors())


@right
def items_of_a_history_from_the_table_of_items():
    class Next(nn.Module):
        def __init__(self):
            super().__init__()
            self.item = nn.Embedding(6, 2)
            self.item_bias = nn.Embedding(6, 1)

        def forward(self, history, item):
            return (self.item(history) * self.item(item)).sum(1) + self.item_bias(item).squeeze(1)

    rated(Next())


@right
def words_and_what_stands_around_them_in_two_tables():
    class Near(nn.Module):
        def __init__(self):
            super().__init__()
            self.center = nn.Embedding(6, 3)
            self.context = nn.Embedding(6, 3)

        def forward(self, center, context, negative):
            word = self.center(center)
            good = (word * self.context(context)).sum(1)
            bad = (word * self.context(negative)).sum(1)
            return -F.logsigmoid(good) - F.logsigmoid(-bad)

    model = Near()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        model(*torch.randint(6, (3, 20))).mean().backward()
        optimizer.step()
