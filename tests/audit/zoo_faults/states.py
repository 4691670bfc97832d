"""Padding, ratios, ties and statistics that are not what they are taken for."""

import copy

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.optim.swa_utils import AveragedModel

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import fault


def words(count=6, most=7):
    """Return sequences of words of unlike lengths, longest not first, and a class for each."""
    texts = [torch.randint(1, 9, (2 + (at * 3) % (most - 1),)) for at in range(count)]
    return texts, torch.tensor([int(text[-1] > 4) for text in texts])


def learn(model, draw, steps=6):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        given, y = draw()
        optimizer.zero_grad()
        F.cross_entropy(model(*given), y).backward()
        optimizer.step()


@fault("padded-step")
def last_column_of_words_with_a_padding_index():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.drop = nn.Embedding(9, 5, padding_idx=0), nn.Dropout(0.1)
            self.rnn, self.head = nn.LSTM(5, 6, batch_first=True), nn.Linear(6, 2)

        def forward(self, tokens):
            out, _ = self.rnn(self.drop(self.embed(tokens)))
            return self.head(out[:, -1, :])  # <- here

    def draw():
        texts, y = words()
        padded = torch.zeros(len(texts), 9, dtype=torch.long)
        for row, text in zip(padded, texts, strict=True):
            row[: len(text)] = text
        return (padded,), y

    learn(Reader(), draw)


@fault("padded-step")
def last_step_of_padded_curves_time_first():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = nn.GRU(2, 6), nn.Linear(6, 2)

        def forward(self, curves):
            out, _ = self.rnn(curves)
            return self.head(out[-1])  # <- here

    def draw():
        curves = [torch.randn(3 + at, 2) for at in range(5)]
        return (pad_sequence(curves),), torch.tensor([int(it[-1, 0] > 0) for it in curves])

    learn(Reader(), draw)


@fault("padded-step")
def last_state_where_lengths_are_given_and_unread():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.rnn, self.head = nn.Embedding(9, 5), nn.GRU(5, 6, batch_first=True), nn.Linear(6, 2)

        def forward(self, tokens, lengths):
            _, last = self.rnn(self.embed(tokens))
            return self.head(last[-1])  # <- here

    def draw():
        texts, y = words()
        return (pad_sequence(texts, batch_first=True), torch.tensor([len(it) for it in texts])), y

    learn(Reader(), draw)


@fault("ratio-one")
def old_probabilities_computed_anew_in_each_epoch():
    policy = mlp(4, 3)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
    for _ in range(3):
        state = torch.randn(32, 4)
        with torch.no_grad():
            action = torch.distributions.Categorical(logits=policy(state)).sample()
        gain = (action == 0).float() - 0.3
        for _ in range(4):
            with torch.no_grad():
                old = torch.distributions.Categorical(logits=policy(state)).log_prob(action)
            new = torch.distributions.Categorical(logits=policy(state)).log_prob(action)
            ratio = torch.exp(new - old)  # <- here
            loss = -torch.minimum(ratio * gain, torch.clamp(ratio, 0.8, 1.2) * gain).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            optimizer.step()


@fault("ratio-one")
def quotient_of_a_policy_with_itself():
    policy = nn.Sequential(mlp(4, 2), nn.Softmax(dim=1))
    before = policy
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
    for _ in range(2):
        state = torch.randn(24, 4)
        action = torch.multinomial(policy(state).detach(), 1)
        gain = (action == 1).float() - 0.5
        for part in torch.arange(24).split(6):
            chosen = policy(state[part]).gather(1, action[part])
            ratio = chosen / before(state[part]).gather(1, action[part]).detach()  # <- here
            loss = -torch.min(ratio * gain[part], ratio.clip(0.8, 1.2) * gain[part]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def learn_language(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        text = torch.randint(9, (4, 7))
        optimizer.zero_grad()
        F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten()).backward()
        optimizer.step()


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(9, 6), nn.GRU(6, 6, batch_first=True)
        self.head = nn.Linear(6, 9, bias=False)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


@fault("tie-broken")
def head_that_copies_what_it_should_share():
    class Tied(Language):
        def __init__(self):
            super().__init__()
            self.tie_weights()

        def tie_weights(self):
            self.head.weight.data.copy_(self.embed.weight.data)  # <- here

    learn_language(Tied())


@fault("tie-broken")
def two_parameters_on_one_memory():
    class Shared(Language):
        def __init__(self):
            super().__init__()
            self.head.weight = nn.Parameter(self.embed.weight)  # <- here

    learn_language(Shared())


@fault("tie-broken")
def head_that_was_tied_before_it_was_replaced():
    class Sharing(Language):
        def __init__(self):
            super().__init__()
            self.head.weight = self.embed.weight

    model = Sharing()
    model.head = nn.Linear(model.head.in_features, model.head.out_features, bias=False)  # <- here
    learn_language(model)


@fault("tie-broken")
def embedding_begun_anew_behind_the_tie():
    class Sharing(Language):
        def __init__(self):
            super().__init__()
            self.head.weight = self.embed.weight
            self.begin()

        def begin(self):
            self.embed.weight = nn.Parameter(0.1 * torch.randn_like(self.embed.weight))  # <- here

    learn_language(Sharing())


@fault("tie-broken")
def decoder_with_a_turned_copy_of_the_encoder():
    class Mirror(nn.Module):
        """An autoencoder with tied weights."""

        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = nn.Linear(6, 3), nn.Linear(3, 6)
            self.decoder.weight = nn.Parameter(self.encoder.weight.t().clone())  # <- here

        def forward(self, x):
            return self.decoder(self.encoder(x).tanh())

    model = Mirror()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        x = torch.randn(8, 6)
        optimizer.zero_grad()
        F.mse_loss(model(x), x).backward()
        optimizer.step()


def normed():
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))


@fault("stale-statistics")
def average_whose_norms_are_as_they_were_made():
    x, y = lines()
    model = normed()
    smooth = copy.deepcopy(model).requires_grad_(False)
    smooth.eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(8):
        optimizer.zero_grad()
        F.mse_loss(model(3 * x + 2), y).backward()
        optimizer.step()
        with torch.no_grad():
            for mine, theirs in zip(smooth.parameters(), model.parameters(), strict=True):  # <- here
                mine.mul_(0.5).add_(theirs, alpha=0.5)
        with torch.no_grad():
            smooth(3 * x + 2)


@fault("stale-statistics")
def average_that_began_late_and_took_no_buffers():
    x, y = lines()
    model = normed()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def step():
        optimizer.zero_grad()
        F.mse_loss(model(3 * x + 2), y).backward()
        optimizer.step()

    for _ in range(3):
        step()
    smooth = copy.deepcopy(model)
    for _ in range(8):
        step()
        with torch.no_grad():
            for mine, theirs in zip(smooth.parameters(), model.parameters(), strict=True):  # <- here
                mine.lerp_(theirs, 0.3)
            smooth.eval()
            smooth(3 * x + 2)


@fault("stale-statistics")
def mean_of_weights_without_new_statistics():
    x, y = blobs()
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    mean = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        mean.update_parameters(model)
    mean.eval()  # <- here
    with torch.inference_mode():
        mean(x)


@fault("stale-statistics")
def average_by_the_names_of_parameters():
    x, y = lines()
    model = normed()
    slow = copy.deepcopy(model)
    slow.eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def follow(source, copy_of):
        fast = dict(source.named_parameters())
        with torch.no_grad():
            for name, p in copy_of.named_parameters():  # <- here
                p.copy_(0.5 * p + 0.5 * fast[name])

    for _ in range(8):
        optimizer.zero_grad()
        F.mse_loss(model(3 * x + 2), y).backward()
        optimizer.step()
        follow(model, slow)
        with torch.no_grad():
            slow(3 * x + 2)
