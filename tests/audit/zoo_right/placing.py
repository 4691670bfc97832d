"""Positions along the sequence."""

import torch
from torch import nn

from tests.audit.registry import right
from tests.audit.zoo_faults.placing import read


@right
def a_table_of_positions_cut_to_the_time():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(9, 8)
            self.register_buffer("pe", torch.randn(1, 64, 8))
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
            self.out = nn.Linear(8, 2)

        def forward(self, words):
            x = self.embed(words)
            x = x + self.pe[:, : x.size(1)]
            return self.out(self.layer(x).mean(1))

    read(Reader())


@right
def rows_of_a_queue_as_many_as_the_batch():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(9, 8)
            self.register_buffer("negatives", torch.randn(64, 1, 8))
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
            self.out = nn.Linear(8, 2)

        def forward(self, words):
            x = self.embed(words)
            x = x + self.negatives[: x.size(0)]
            return self.out(self.layer(x).mean(1))

    read(Reader())
