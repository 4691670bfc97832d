"""Positions along the first axis, where the time stands there."""

import torch
from torch import nn

from tests.audit.registry import right
from tests.audit.zoo_faults.placing import read


@right
def a_table_of_positions_for_time_first():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(9, 8)
            self.register_buffer("pe", torch.randn(64, 1, 8))
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
            self.out = nn.Linear(8, 2)

        def forward(self, words):
            x = self.embed(words.transpose(0, 1))
            x = x + self.pe[: x.size(0)]
            return self.out(self.layer(x).mean(0))

    read(Reader())
