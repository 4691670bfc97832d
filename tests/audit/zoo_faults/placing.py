"""Positions along the wrong axis."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.registry import fault


def read(model, steps=5):
    """Train a reader of sequences of twelve words on two classes."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        words, y = torch.randint(9, (8, 12)), torch.randint(2, (8,))
        optimizer.zero_grad()
        F.cross_entropy(model(words), y).backward()
        optimizer.step()


@fault("positions-of-batch")
def a_table_of_positions_cut_to_the_batch():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(9, 8)
            self.register_buffer("pe", torch.randn(64, 1, 8))
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
            self.out = nn.Linear(8, 2)

        def forward(self, words):
            x = self.embed(words)
            x = x + self.pe[: x.size(0)]  # <- here
            return self.out(self.layer(x).mean(1))

    read(Reader())


@fault("positions-of-batch")
def positions_learnt_for_each_sample():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.pos_emb = nn.Embedding(9, 8), nn.Embedding(64, 8)
            self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
            self.out = nn.Linear(8, 2)

        def forward(self, words):
            h = self.embed(words)
            h = h + self.pos_emb(torch.arange(h.shape[0])).unsqueeze(1)  # <- here
            return self.out(self.attend(h, h, h)[0].mean(1))

    read(Reader())
