"""Recurrent states that go on where the data go on, and that begin anew where they do not."""

import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from tests.audit.registry import right


class Reader(nn.Module):
    def __init__(self, width=3, out=2):
        super().__init__()
        self.rnn, self.head = nn.LSTM(width, 8, batch_first=True), nn.Linear(8, out)

    def forward(self, x, state=None):
        out, state = self.rnn(x, state)
        return self.head(out), state


def _learner(*widths):
    model = Reader(*widths)
    return model, torch.optim.Adam(model.parameters(), lr=0.01)


@right
def streams_read_piece_by_piece():
    streams = torch.randn(4, 60, 3)
    wanted = (streams.sum(dim=2) > 0).long()
    model, optimizer = _learner()
    for _ in range(2):
        state = None
        for begin in range(0, 60, 10):
            scores, state = model(streams[:, begin : begin + 10], state)
            state = tuple(part.detach() for part in state)
            loss = F.cross_entropy(scores.flatten(0, 1), wanted[:, begin : begin + 10].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@right
def shuffled_documents_read_piece_by_piece():
    documents = torch.randn(24, 20, 3)
    loader = DataLoader(TensorDataset(documents, (documents.sum(dim=2) > 0).long()), batch_size=8, shuffle=True)
    model, optimizer = _learner()
    for _ in range(2):
        for x, y in loader:
            state = None
            for piece, wanted in zip(x.split(5, dim=1), y.split(5, dim=1), strict=True):
                scores, state = model(piece, state)
                state = tuple(part.detach() for part in state)
                optimizer.zero_grad()
                F.cross_entropy(scores.flatten(0, 1), wanted.flatten()).backward()
                optimizer.step()


@right
def shuffled_songs_and_a_state_that_is_set_back():
    songs = [torch.randn(1, 6 * length, 3) for length in (2, 3, 4, 2)]
    model, optimizer = _learner()
    for _ in range(2):
        random.shuffle(songs)
        state = (torch.zeros(1, 1, 8), torch.zeros(1, 1, 8))
        for song in songs:
            for part in state:
                part.zero_()
            for begin in range(0, song.shape[1], 6):
                piece = song[:, begin : begin + 6]
                scores, state = model(piece, state)
                state = tuple(part.detach() for part in state)
                optimizer.zero_grad()
                F.cross_entropy(scores.flatten(0, 1), (piece.sum(dim=2) > 0).long().flatten()).backward()
                optimizer.step()


@right
def a_stream_of_drawn_symbols():
    one_hot = torch.eye(5)
    model, optimizer = _learner(5, 5)
    state, last = None, torch.zeros(4, dtype=torch.long)
    for _ in range(12):
        symbol = torch.randint(5, (4,))
        scores, state = model(one_hot[symbol][:, None], state)
        state = tuple(part.detach() for part in state)
        loss = F.cross_entropy(scores[:, 0], last)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        last = symbol


@right
def pieces_of_mixed_documents_from_a_generator():
    documents = torch.randn(6, 12, 3)

    def pieces():
        for at in torch.randperm(len(documents)).tolist():
            for begin in range(0, 12, 4):
                yield documents[at : at + 1, begin : begin + 4], begin == 0

    model, optimizer = _learner()
    state = None
    for piece, is_first in pieces():
        if is_first:
            state = None
        scores, state = model(piece, state)
        state = tuple(part.detach() for part in state)
        optimizer.zero_grad()
        F.cross_entropy(scores.flatten(0, 1), (piece.sum(dim=2) > 0).long().flatten()).backward()
        optimizer.step()


@right
def batches_in_order_from_a_loader():
    text = torch.randint(5, (6, 41)).sort(dim=1).values
    steps = TensorDataset(text[:, :-1].t().contiguous(), text[:, 1:].t().contiguous())
    loader = DataLoader(steps, batch_size=8)
    model, optimizer = _learner(5, 5)
    for _ in range(2):
        state = None
        for given, wanted in loader:
            scores, state = model(F.one_hot(given.t(), 5).float(), state)
            state = tuple(part.detach() for part in state)
            optimizer.zero_grad()
            F.cross_entropy(scores.flatten(0, 1), wanted.t().flatten()).backward()
            optimizer.step()
