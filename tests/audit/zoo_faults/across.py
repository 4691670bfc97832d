"""Layers for sequences that run across the samples."""

import torch
from torch import nn

from tests.audit.parts import reads_sequences
from tests.audit.registry import fault


@fault("axes-swapped")
def an_encoder_that_takes_the_batch_for_time():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 8)
            layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)  # <- here
            self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
            self.head = nn.Linear(8, 2)

        def forward(self, x):
            return self.head(self.encoder(self.inner(x)).mean(dim=1))

    reads_sequences(Reader(), (6, 9, 3))


@fault("axes-swapped")
def attention_that_takes_the_batch_for_time():
    class Attends(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 8)
            self.attend = nn.MultiheadAttention(8, 2)  # <- here
            self.head = nn.Linear(8, 2)

        def forward(self, x):
            h = self.inner(x)
            h = h + self.attend(h, h, h, need_weights=False)[0]
            return self.head(h[:, 0])

    reads_sequences(Attends(), (6, 11, 3))


@fault("axes-swapped")
def the_mean_over_time_of_a_layer_run_along_the_batch():
    class Averages(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(3, 8)  # <- here
            self.head = nn.Linear(8, 2)

        def forward(self, x):
            return self.head(self.rnn(x)[0].mean(dim=1))

    reads_sequences(Averages(), (6, 9, 3))


@fault("axes-swapped")
def time_first_for_a_layer_that_takes_the_batch_first():
    class Turned(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 8)
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)  # <- here
            self.head = nn.Linear(8, 2)

        def forward(self, x):
            h = self.layer(self.inner(x).transpose(0, 1))
            return self.head(torch.amax(h, dim=0))

    reads_sequences(Turned(), (6, 9, 3))
