"""Faults of sequences, losses with odd arguments, and forwards that undo what a step did."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from tests.audit.parts import mlp
from tests.audit.registry import fault

PAD = 0


@fault("loss-argument")
def counts_of_a_rate():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1), nn.Softplus())
    criterion = nn.PoissonNLLLoss()  # <- here
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        x = torch.randn(16, 4)
        optimizer.zero_grad()
        criterion(model(x), torch.poisson(x.exp().sum(1, keepdim=True))).backward()
        optimizer.step()


@fault("loss-argument")
def pairs_marked_by_zero():
    model = mlp(4, 6)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        a, b = torch.randn(16, 4), torch.randn(16, 4)
        same = (a.sum(1) * b.sum(1) > 0).float()  # <- here
        optimizer.zero_grad()
        F.cosine_embedding_loss(model(a), model(b), same).backward()
        optimizer.step()


@fault("state-cut")
def memory_of_one_step():
    cell, head = nn.LSTMCell(3, 8), nn.Linear(8, 2)
    optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=0.01)
    for _ in range(6):
        words = torch.randn(7, 5, 3)
        h = c = torch.zeros(5, 8)
        for word in words:
            h, c = cell(word, (h.detach(), c.detach()))  # <- here
        optimizer.zero_grad()
        F.cross_entropy(head(h), (words[0, :, 0] > 0).long()).backward()
        optimizer.step()


@fault("axes-swapped")
def last_of_the_batch():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.GRU(3, 8)  # <- here
            self.head = nn.Linear(8, 2)

        def forward(self, x):
            out, _ = self.layer(x)
            return self.head(out[:, -1])

    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        x = torch.randn(5, 7, 3)
        optimizer.zero_grad()
        F.cross_entropy(model(x), (x[:, 0, 0] > 0).long()).backward()
        optimizer.step()


@fault("mask-inverted")
def words_hidden_and_padding_read():
    words = nn.Embedding(10, 8)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    head = nn.Linear(8, 2)
    parts = nn.ModuleList([words, layer, head])
    optimizer = torch.optim.Adam(parts.parameters(), lr=0.01)
    for _ in range(4):
        tokens = torch.randint(1, 10, (6, 5))
        tokens[:, 3:] = PAD
        keep = tokens != PAD
        out = layer(words(tokens), src_key_padding_mask=keep)  # <- here
        optimizer.zero_grad()
        F.cross_entropy(head(out[:, 0]), torch.randint(2, (6,))).backward()
        optimizer.step()


@fault("overwritten")
def scale_set_by_every_batch():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(4))
            self.head = nn.Linear(4, 2)

        def forward(self, x):
            self.scale.data = 1 / (x.std(0) + 1e-3)  # <- here
            return self.head(x * self.scale)

    model = Scaled()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(8):
        x = torch.randn(16, 4)
        optimizer.zero_grad()
        F.cross_entropy(model(x), (x[:, 0] > 0).long()).backward()
        optimizer.step()


@fault("recomputed-otherwise")
def other_dropout_in_the_second_forward():
    block = nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.5), nn.Tanh())
    first, head = nn.Linear(4, 4), nn.Linear(16, 2)
    optimizer = torch.optim.Adam([*first.parameters(), *block.parameters(), *head.parameters()], lr=0.01)
    for _ in range(6):
        x = torch.randn(16, 4)
        h = checkpoint(block, first(x), use_reentrant=False, preserve_rng_state=False)  # <- here
        optimizer.zero_grad()
        F.cross_entropy(head(h), (x[:, 0] > 0).long()).backward()
        optimizer.step()


@fault("derivative-zero")
def curvature_of_straight_pieces():
    bend = nn.ReLU()  # <- here
    model = nn.Sequential(nn.Linear(1, 16), bend, nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        x = torch.rand(12, 1, requires_grad=True)
        u = model(x)
        first = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
        second = torch.autograd.grad(first.sum(), x, create_graph=True, allow_unused=True)[0]
        second = torch.zeros_like(x) if second is None else second
        optimizer.zero_grad()
        ((second + u).square().mean() + model(torch.zeros(1, 1)).square().sum()).backward()
        optimizer.step()
