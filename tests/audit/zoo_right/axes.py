"""Right loops whose reshapes, softmaxes and attentions look as if axes were taken for one another."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import mlp
from tests.audit.registry import right

VOCABULARY, TIME, WIDTH = 11, 8, 12


def learn(model, shape=(8, 5, 6), steps=6):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        x = torch.randn(shape)
        optimizer.zero_grad()
        F.mse_loss(model(x)[:, :1], x.flatten(1)[:, :1]).backward()
        optimizer.step()


@right
def groups_normalized_by_hand():
    class Groups(nn.Module):
        def __init__(self, groups):
            super().__init__()
            self.groups, self.inner = groups, nn.Conv1d(6, 6, 1)

        def forward(self, x):
            hidden = self.inner(x)
            parts = hidden.view(x.size(0), self.groups, -1)
            parts = (parts - parts.mean(-1, keepdim=True)) / (parts.std(-1, keepdim=True) + 1e-5)
            return parts.view(hidden.shape).mean(-1)

    learn(Groups(3), (8, 6, 3))


@right
def heads_by_view_and_transpose():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.both = nn.Linear(6, 18)

        def forward(self, x):
            b, t, e = x.shape
            q, k, v = (it.view(b, t, 3, e // 3).transpose(1, 2) for it in self.both(x).chunk(3, -1))
            return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, e).mean(1)

    learn(Attention(), (8, 3, 6))


@right
def channels_shuffled():
    class Shuffle(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Conv2d(4, 8, 1, groups=2), nn.Conv2d(8, 4, 1, groups=2)

        def forward(self, x):
            hidden = self.one(x)
            n, c, h, w = hidden.shape
            hidden = hidden.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)
            return self.two(hidden).mean((2, 3))

    learn(Shuffle(), (5, 4, 3, 6))


@right
def both_sides_of_a_loss_reshaped_alike():
    model = nn.Linear(6, 6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        x = torch.randn(4, 5, 6)
        guess, wanted = model(x).view(4, 6, 5), x.view(4, 6, 5)
        optimizer.zero_grad()
        F.mse_loss(guess, wanted).backward()
        optimizer.step()


@right
def points_assigned_to_centers():
    class Centers(nn.Module):
        def __init__(self):
            super().__init__()
            self.at = nn.Parameter(torch.randn(4, 6))

        def forward(self, x):
            share = torch.softmax(-torch.cdist(x, self.at), dim=-1)
            sums = share.transpose(1, 2) @ x
            return (sums / share.sum(1).unsqueeze(-1)).mean(1)

    learn(Centers())


@right
def slots_that_compete_for_their_inputs():
    class Slots(nn.Module):
        def __init__(self):
            super().__init__()
            self.start, self.k, self.v = nn.Parameter(torch.randn(5, 6)), nn.Linear(6, 6), nn.Linear(6, 6)

        def forward(self, x):
            share = (self.start @ self.k(x).mT).softmax(1)
            share = share / share.sum(-1, keepdim=True)
            return (share @ self.v(x)).mean(1)

    learn(Slots())


@right
def pooling_over_time_that_comes_first():
    class Pool(nn.Module):
        def __init__(self):
            super().__init__()
            self.score, self.out = nn.Linear(6, 1), nn.Linear(6, 1)

        def forward(self, x):
            x = x.transpose(0, 1)
            weights = self.score(x).softmax(0)
            return self.out((weights * x).sum(0))

    learn(Pool(), (5, 5, 6))


@right
def experts_weighted_along_the_first_axis():
    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts, self.gate = nn.ModuleList(nn.Linear(6, 2) for _ in range(4)), nn.Linear(6, 4)

        def forward(self, x):
            weights = self.gate(x).t().softmax(0)
            return (weights.unsqueeze(-1) * torch.stack([part(x) for part in self.parts])).sum(0)

    learn(Experts(), (8, 6))


@right
def both_directions_of_a_contrast():
    one, two = mlp(4, 6), mlp(4, 6)
    optimizer = torch.optim.Adam([*one.parameters(), *two.parameters()], lr=0.01)
    for _ in range(6):
        x = torch.randn(8, 4)
        alike = F.normalize(one(x), dim=1) @ F.normalize(two(x), dim=1).t() / 0.1
        right_one = torch.arange(8)
        loss = F.nll_loss(alike.log_softmax(1), right_one) + F.nll_loss(alike.log_softmax(0), right_one)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Causal(nn.Module):
    """A language model of one attention, masked."""

    def __init__(self, value=float("-inf")):
        super().__init__()
        self.embed, self.qkv = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, 3 * WIDTH)
        self.head, self.value = nn.Linear(WIDTH, VOCABULARY), value

    def forward(self, tokens):
        x = self.embed(tokens)
        q, k, v = self.qkv(x).chunk(3, -1)
        mask = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1)
        weights = (q @ k.transpose(1, 2)).masked_fill(mask, self.value).softmax(-1)
        return self.head(x + F.dropout(weights, 0.1, self.training) @ v)


def learn_language(model, steps=6):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        text = torch.randint(VOCABULARY, (4, TIME + 1))
        optimizer.zero_grad()
        F.cross_entropy(model(text[:, :-1]).reshape(-1, VOCABULARY), text[:, 1:].reshape(-1)).backward()
        optimizer.step()


@right
def language_model_with_a_mask():
    learn_language(Causal())
    learn_language(Causal(-1e9))


@right
def language_model_of_a_causal_convolution():
    class Language(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.mix = nn.Embedding(VOCABULARY, WIDTH), nn.Conv1d(WIDTH, WIDTH, 3)
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, tokens):
            hidden = F.pad(self.embed(tokens).transpose(1, 2), (2, 0))
            return self.head(self.mix(hidden).relu().transpose(1, 2))

    learn_language(Language())


@right
def masked_words_from_both_sides():
    class Filling(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(VOCABULARY + 1, WIDTH)
            self.rnn = nn.GRU(WIDTH, WIDTH, batch_first=True, bidirectional=True)
            self.head = nn.Linear(2 * WIDTH, VOCABULARY)

        def forward(self, tokens):
            return self.head(self.rnn(self.embed(tokens))[0])

    model = Filling()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        text = torch.randint(VOCABULARY, (4, TIME))
        hidden = torch.rand(4, TIME) < 0.4
        scores = model(text.masked_fill(hidden, VOCABULARY))
        optimizer.zero_grad()
        F.cross_entropy(scores.transpose(1, 2), text.masked_fill(~hidden, -100)).backward()
        optimizer.step()


@right
def copying_with_an_encoder_that_sees_all():
    class Copying(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(VOCABULARY, WIDTH)
            self.encoder = nn.GRU(WIDTH, WIDTH, batch_first=True)
            self.decoder = nn.GRU(WIDTH, WIDTH, batch_first=True)
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, source, begun):
            _, state = self.encoder(self.embed(source))
            return self.head(self.decoder(self.embed(begun), state)[0])

    model = Copying()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        text = torch.randint(VOCABULARY, (4, TIME))
        scores = model(text, text[:, :-1])
        optimizer.zero_grad()
        F.cross_entropy(scores.reshape(-1, VOCABULARY), text[:, 1:].reshape(-1)).backward()
        optimizer.step()


@right
def matches_by_two_softmaxes():
    class Matching(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(6, 6), nn.Linear(6, 6)

        def forward(self, x):
            alike = self.one(x) @ self.two(x).mT
            share = alike.softmax(1) * alike.softmax(2)
            return (share @ x).mean(1)

    learn(Matching())


@right
def heads_packed_into_the_batch_where_sizes_agree_by_chance():
    class Attention(nn.Module):
        def __init__(self, heads):
            super().__init__()
            self.heads, self.both = heads, nn.Linear(8, 24)

        def forward(self, x):
            steps, batch, width = x.shape
            parts = self.both(x).chunk(3, -1)
            q, k, v = (it.reshape(steps, batch * self.heads, width // self.heads).transpose(0, 1) for it in parts)
            mixed = F.scaled_dot_product_attention(q, k, v).transpose(0, 1)
            return mixed.reshape(steps, batch, width).mean(1)

    learn(Attention(2), (5, 4, 8), steps=3)
