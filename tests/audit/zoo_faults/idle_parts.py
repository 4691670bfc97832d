"""Parts that an optimizer was given by name, and that ask for no gradient."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, mlp
from tests.audit.registry import fault


class Bag(nn.Module):
    """A classifier over a table of vectors."""

    def __init__(self, table):
        super().__init__()
        self.table = table
        self.head = nn.Linear(6, 3)

    def forward(self, words):
        vectors = self.table(words)
        return self.head(vectors.mean(1) if vectors.dim() == 3 else vectors)


def trained(model, optimizer):
    for _ in range(5):
        words, labels = torch.randint(0, 20, (8, 5)), torch.randint(3, (8,))
        optimizer.zero_grad()
        F.cross_entropy(model(words), labels).backward()
        optimizer.step()


@fault("frozen")
def pretrained_table_in_a_group_of_its_own():
    table = nn.Embedding.from_pretrained(torch.randn(20, 6))  # <- here
    model = Bag(table)
    slow = {"params": model.table.parameters(), "lr": 1e-3}
    optimizer = torch.optim.Adam([slow, {"params": model.head.parameters()}], lr=0.01)
    trained(model, optimizer)


@fault("frozen")
def pretrained_table_beside_the_head_in_one_list():
    model = Bag(nn.EmbeddingBag.from_pretrained(torch.randn(20, 6), mode="mean"))  # <- here
    optimizer = torch.optim.SGD(list(model.table.parameters()) + list(model.head.parameters()), lr=0.1)
    trained(model, optimizer)


@fault("frozen")
def tensor_that_was_not_told_to_learn():
    x, y = blobs()
    model, scale = mlp(), torch.ones(3)  # <- here
    optimizer = torch.optim.Adam([*model.parameters(), scale], lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(model(x) * scale, y).backward()
        optimizer.step()


@fault("frozen")
def prompt_in_its_group():
    x, y = blobs()
    model = mlp(8)
    prompt = torch.zeros(1, 4)  # <- here
    optimizer = torch.optim.AdamW([dict(params=[prompt], lr=0.1), dict(params=model.parameters(), lr=0.01)])
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(model(torch.cat([x, prompt.expand(16, 4)], 1)), y).backward()
        optimizer.step()
