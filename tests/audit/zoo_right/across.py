"""Layers for sequences that run along time, or along something else on purpose."""

from torch import nn

from tests.audit.parts import reads_sequences
from tests.audit.registry import right


class Reader(nn.Module):
    """Reads sequences by an encoder of two layers."""

    def __init__(self, first):
        super().__init__()
        self.first = first
        self.inner = nn.Linear(3, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        h = self.inner(x)
        h = self.encoder(h) if self.first else self.encoder(h.transpose(0, 1)).transpose(0, 1)
        return self.head(h.mean(dim=1))


@right
def an_encoder_with_the_batch_first():
    reads_sequences(Reader(True), (6, 9, 3))


@right
def an_encoder_with_time_first():
    reads_sequences(Reader(False), (6, 9, 3))


@right
def as_many_steps_as_samples():
    reads_sequences(Reader(True), (6, 6, 3))


@right
def attention_among_the_rows_of_a_table():
    class Rows(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(15, 8)
            self.among = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
            self.head = nn.Linear(8, 2)

        def forward(self, x):
            return self.head(self.among(self.inner(x.flatten(1)).unsqueeze(1)).squeeze(1))

    reads_sequences(Rows(), (6, 5, 3))


@right
def attention_along_both_axes_of_each_sample():
    class Axial(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 8)
            self.rows = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
            self.columns = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
            self.head = nn.Linear(8, 2)

        def forward(self, x):
            h = self.inner(x).unflatten(1, (2, 6))
            h = self.rows(h.flatten(0, 1)).unflatten(0, (-1, 2))
            h = self.columns(h.transpose(1, 2).flatten(0, 1)).unflatten(0, (-1, 6))
            return self.head(h.mean(dim=(1, 2)))

    reads_sequences(Axial(), (6, 12, 3))


@right
def a_recurrent_layer_with_time_first():
    class Averages(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(3, 8)
            self.head = nn.Linear(8, 2)

        def forward(self, x):
            return self.head(self.rnn(x.transpose(0, 1))[0].mean(dim=0))

    reads_sequences(Averages(), (6, 9, 3))
