"""Axes that are taken for one another, and positions that see what comes after them."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import mlp
from tests.audit.registry import fault

VOCABULARY, TIME, WIDTH = 11, 8, 12


@fault("view-not-transpose")
def tags_whose_class_axis_is_made_by_view():
    model = nn.Sequential(nn.Embedding(9, 6), nn.Linear(6, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        tokens = torch.randint(9, (5, 7))
        loss = F.cross_entropy(model(tokens).view(5, 4, 7), tokens % 4)  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("view-not-transpose")
def heads_split_and_merged_without_transposing():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.both, self.heads = nn.Linear(12, 36), 3

        def forward(self, x):
            count, steps, width = x.shape
            parts = self.both(x).chunk(3, 2)
            q, k, v = (it.reshape(count, self.heads, steps, 4) for it in parts)  # <- here
            mixed = F.scaled_dot_product_attention(q, k, v)
            return mixed.transpose(1, 2).reshape(count, steps, width)

    model = nn.Sequential(Attention(), nn.Linear(12, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        x = torch.randn(4, 5, 12)
        optimizer.zero_grad()
        F.mse_loss(model(x).mean(1), x[..., :1].amax(1)).backward()
        optimizer.step()


@fault("view-not-transpose")
def batch_brought_to_the_second_place_by_reshape():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.rnn, self.outer = nn.Linear(3, 6), nn.GRU(6, 6), nn.Linear(6, 2)

        def forward(self, x):
            batch, steps = x.size(0), x.size(1)
            hidden = self.inner(x).tanh()
            hidden = hidden.reshape(steps, batch, -1)  # <- here
            return self.outer(self.rnn(hidden)[0][-1])

    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        x = torch.randn(6, 9, 3)
        optimizer.zero_grad()
        F.cross_entropy(model(x), (x[:, 0, 0] > 0).long()).backward()
        optimizer.step()


@fault("view-not-transpose")
def states_of_two_directions_put_together_by_view():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.LSTM(3, 6, batch_first=True, bidirectional=True)
            self.outer = nn.Linear(12, 2)

        def forward(self, x):
            _, (last, _) = self.rnn(x)
            return self.outer(last.view(x.size(0), -1))  # <- here

    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        x = torch.randn(8, 5, 3)
        optimizer.zero_grad()
        F.cross_entropy(model(x), (x[:, 0, 0] > 0).long()).backward()
        optimizer.step()


def learn_sums(model, batch=8):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        x = torch.randn(batch, 5, 6)
        optimizer.zero_grad()
        F.mse_loss(model(x)[:, :1], x.sum(1)[:, :1]).backward()
        optimizer.step()


@fault("softmax-axis")
def attention_normalized_over_its_heads():
    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = (nn.Linear(6, 6) for _ in range(3))

        def forward(self, x):
            q, k, v = (layer(x).unflatten(-1, (3, 2)).transpose(1, 2) for layer in (self.q, self.k, self.v))
            weights = F.softmax(q @ k.transpose(-1, -2), dim=1)  # <- here
            return (F.dropout(weights, 0.1, self.training) @ v).transpose(1, 2).flatten(2).mean(1)

    learn_sums(Heads())


@fault("softmax-axis")
def attention_normalized_over_its_batch():
    class Single(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = (nn.Linear(6, 6) for _ in range(3))
            self.soft = nn.Softmax(dim=0)  # <- here

        def forward(self, x):
            return torch.bmm(self.soft(torch.bmm(self.q(x), self.k(x).transpose(1, 2))), self.v(x)).mean(1)

    learn_sums(Single())


@fault("softmax-axis")
def pooling_with_weights_over_the_batch():
    class Pool(nn.Module):
        def __init__(self):
            super().__init__()
            self.score, self.out = nn.Linear(6, 1), nn.Linear(6, 1)

        def forward(self, x):
            weights = torch.softmax(self.score(x).squeeze(-1), dim=0)  # <- here
            return self.out((weights.unsqueeze(-1) * x).sum(1))

    learn_sums(Pool())


@fault("softmax-axis")
def likelihood_normalized_over_the_batch():
    model = mlp(4, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        x = torch.randn(16, 4)
        scores = F.log_softmax(model(x), dim=0)  # <- here
        optimizer.zero_grad()
        F.nll_loss(scores, x[:, :3].argmax(1)).backward()
        optimizer.step()


def learn_language(model, whole=False, time_first=False):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        text = torch.randint(VOCABULARY, (4, TIME + 1))
        given, wanted = text[:, :-1], text[:, 1:]
        if time_first:
            scores = model(given.t().contiguous()).transpose(0, 1)
        else:
            scores = model(text)[:, :-1] if whole else model(given)
        optimizer.zero_grad()
        F.cross_entropy(scores.reshape(-1, VOCABULARY), wanted.reshape(-1)).backward()
        optimizer.step()


@fault("sees-target")
def language_model_of_an_encoder_without_mask():
    class Language(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.place = nn.Embedding(VOCABULARY, WIDTH), nn.Parameter(torch.randn(TIME + 1, WIDTH))
            layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, batch_first=True)
            self.encoder, self.head = nn.TransformerEncoder(layer, 1), nn.Linear(WIDTH, VOCABULARY)

        def forward(self, tokens):
            return self.head(self.encoder(self.embed(tokens) + self.place[: tokens.shape[1]]))  # <- here

    learn_language(Language(), whole=True)


@fault("sees-target")
def language_model_that_reads_both_ways():
    class Language(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(VOCABULARY, WIDTH)
            self.rnn = nn.LSTM(WIDTH, WIDTH, batch_first=True, bidirectional=True)  # <- here
            self.head = nn.Linear(2 * WIDTH, VOCABULARY)

        def forward(self, tokens):
            return self.head(self.rnn(self.embed(tokens))[0])

    learn_language(Language())


@fault("sees-target")
def convolution_padded_on_both_sides():
    class Language(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(VOCABULARY, WIDTH)
            self.mix = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)  # <- here
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, tokens):
            hidden = self.embed(tokens).transpose(1, 2)
            return self.head(self.mix(hidden).relu().transpose(1, 2))

    model = Language()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        text = torch.randint(VOCABULARY, (4, TIME + 1))
        optimizer.zero_grad()
        F.cross_entropy(model(text[:, :-1]).transpose(1, 2), text[:, 1:]).backward()
        optimizer.step()


@fault("sees-target", "no-effect")
def attention_by_hand_whose_mask_is_lost():
    class Language(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.qkv = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, 3 * WIDTH)
            self.head = nn.Linear(WIDTH, VOCABULARY)
            self.register_buffer("mask", torch.triu(torch.ones(TIME, TIME, dtype=torch.bool), 1))

        def forward(self, tokens):
            x = self.embed(tokens)
            q, k, v = self.qkv(x).chunk(3, -1)
            scores = q @ k.transpose(1, 2) / WIDTH**0.5
            scores.masked_fill(self.mask, float("-inf"))
            return self.head(x + scores.softmax(-1) @ v)  # <- here

    learn_language(Language())
