"""Layers that read both ways, of which one end is taken."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence

from tests.audit.parts import reads_sequences
from tests.audit.registry import fault


@fault("one-end-of-both")
def last_step_of_both():
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.LSTM(3, 8, batch_first=True, bidirectional=True)
            self.out = nn.Linear(16, 2)

        def forward(self, batch):
            read, _ = self.words(batch)
            return self.out(read[:, -1, :])  # <- here

    reads_sequences(Tagger(), (6, 7, 3))


@fault("one-end-of-both")
def last_step_along_the_first_axis():
    class Rater(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.GRU(3, 8, num_layers=2, bidirectional=True)
            self.head = nn.Linear(16, 2)

        def forward(self, batch):
            steps = self.layer(batch.transpose(0, 1))[0]
            end = steps[-1]  # <- here
            return self.head(F.dropout(end, 0.1, self.training))

    reads_sequences(Rater(), (6, 7, 3))


@fault("one-end-of-both")
def state_of_the_way_back():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.LSTM(3, 8, batch_first=True, bidirectional=True)
            self.head = nn.Linear(8, 2)

        def forward(self, batch):
            lengths = torch.arange(len(batch)) % batch.shape[1] + 1
            packed = pack_padded_sequence(batch, lengths, batch_first=True, enforce_sorted=False)
            _, (hidden, _) = self.rnn(packed)
            return self.head(hidden[-1])  # <- here

    reads_sequences(Reader(), (6, 7, 3))
