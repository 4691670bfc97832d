"""A recurrent state that goes from one batch to the next, though the batches are shuffled."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from tests.audit.registry import fault


def _sequences(count=40):
    x = torch.randn(count, 6, 3)
    return x, (x.sum(dim=(1, 2)) > 0).long()


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(3, 8, batch_first=True), nn.Linear(8, 2)

    def forward(self, x, state=None):
        out, state = self.rnn(x, state)
        return self.head(out[:, -1]), state


@fault("state-of-others")
def state_handed_on_through_a_shuffled_loader():
    def train(model, loader, optimizer):
        model.train()
        hidden = None
        for step, (x, y) in enumerate(loader):
            if step:
                hidden = [part.detach() for part in hidden]
            scores, hidden = model(x, hidden)  # <- here
            loss = F.cross_entropy(scores, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    loader = DataLoader(TensorDataset(*_sequences()), batch_size=8, shuffle=True, drop_last=True)
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(2):
        train(model, loader, optimizer)


@fault("state-of-others")
def state_that_the_model_keeps_for_itself():
    class Keeping(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head, self.state = nn.GRU(3, 8, num_layers=2, batch_first=True), nn.Linear(8, 2), None

        def forward(self, x):
            out, state = self.rnn(x, self.state)  # <- here
            self.state = state.detach().clone()
            return self.head(out.mean(dim=1))

    x, y = _sequences()
    model = Keeping()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        for rows in torch.randperm(len(x)).split(8):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()


@fault("state-of-others")
def state_over_rows_that_were_mixed_first():
    x, y = _sequences(48)
    cell, head = nn.GRUCell(3, 8), nn.Linear(8, 2)
    optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=0.01)
    for _ in range(3):
        order = torch.randperm(len(x))
        mixed, wanted = x[order], y[order]
        h = torch.zeros(12, 8)
        for begin in range(0, 48, 12):
            h = h.detach()
            for t in range(6):
                h = cell(mixed[begin : begin + 12, t], h)  # <- here
            loss = F.cross_entropy(head(h), wanted[begin : begin + 12])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@fault("state-of-others")
def state_over_windows_drawn_anywhere():
    text = torch.randint(7, (300,))
    embed, rnn, out = nn.Embedding(7, 6), nn.LSTM(6, 8, batch_first=True), nn.Linear(8, 7)
    optimizer = torch.optim.Adam([*embed.parameters(), *rnn.parameters(), *out.parameters()], lr=0.01)
    state = (torch.zeros(1, 4, 8), torch.zeros(1, 4, 8))
    for _ in range(8):
        begins = np.random.randint(0, 280, 4)
        given = torch.stack([text[at : at + 12] for at in begins])
        wanted = torch.stack([text[at + 1 : at + 13] for at in begins])
        read, state = rnn(embed(given), state)  # <- here
        state = tuple(part.detach() for part in state)
        loss = F.cross_entropy(out(read).flatten(0, 1), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
