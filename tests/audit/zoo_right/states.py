"""Right loops with padding, ratios, ties and averages that look like the faulty ones."""

import copy

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import right


def words(count=6):
    texts = [torch.randint(1, 9, (2 + (at * 3) % 6,)) for at in range(count)]
    return texts, torch.tensor([int(text[-1] > 4) for text in texts])


class Reader(nn.Module):
    """A classifier of sequences. `way` says how it finds the last step."""

    def __init__(self, way):
        super().__init__()
        self.embed = nn.Embedding(9, 5, padding_idx=0)
        self.rnn, self.head, self.way = nn.GRU(5, 6, batch_first=True), nn.Linear(6, 2), way

    def forward(self, tokens, lengths):
        given = self.embed(tokens)
        if self.way == "packed":
            packed = pack_padded_sequence(given, lengths, batch_first=True, enforce_sorted=False)
            return self.head(self.rnn(packed)[1][-1])
        out, last = self.rnn(given)
        if self.way == "picked":
            return self.head(out[torch.arange(len(out)), lengths - 1])
        if self.way == "masked":
            return self.head((out * (tokens != 0)[..., None]).sum(1) / lengths[:, None])
        return self.head(out[:, -1] + last[-1])


@right
def last_steps_of_padded_words():
    for way in ("packed", "picked", "masked"):
        model = Reader(way)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(5):
            texts, y = words()
            tokens, lengths = pad_sequence(texts, batch_first=True), torch.tensor([len(it) for it in texts])
            optimizer.zero_grad()
            F.cross_entropy(model(tokens, lengths), y).backward()
            optimizer.step()


@right
def padding_in_front():
    model = Reader("last")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        texts, y = words()
        tokens = torch.zeros(len(texts), 8, dtype=torch.long)
        for row, text in zip(tokens, texts, strict=True):
            row[-len(text) :] = text
        optimizer.zero_grad()
        F.cross_entropy(model(tokens, None), y).backward()
        optimizer.step()


@right
def sequences_of_one_length():
    model = Reader("last")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(5):
        texts = [torch.randint(1, 9, (3 + step,)) for _ in range(4)]
        optimizer.zero_grad()
        F.cross_entropy(model(pad_sequence(texts, batch_first=True), None), torch.tensor([0, 1, 0, 1])).backward()
        optimizer.step()


@right
def limited_ratio_with_one_step_for_each_sample():
    policy = mlp(4, 3)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
    for _ in range(8):
        state = torch.randn(32, 4)
        spread = torch.distributions.Categorical(logits=policy(state))
        action = spread.sample()
        gain = (action == 0).float() - 0.3
        new = spread.log_prob(action)
        ratio = (new - new.detach()).exp()
        loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def limited_ratio_that_leaves_one():
    policy = mlp(4, 3)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
    for _ in range(3):
        state = torch.randn(32, 4)
        with torch.no_grad():
            spread = torch.distributions.Categorical(logits=policy(state))
            action = spread.sample()
            old = spread.log_prob(action)
        gain = (action == 0).float() - 0.3
        for _ in range(4):
            new = torch.distributions.Categorical(logits=policy(state)).log_prob(action)
            ratio = torch.exp(new - old)
            loss = -torch.minimum(ratio * gain, torch.clamp(ratio, 0.8, 1.2) * gain).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@right
def scores_multiplied_by_a_one_that_has_a_gradient():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        chosen = model(x).log_softmax(1).gather(1, y[:, None])
        box = (chosen - chosen.detach()).exp()
        optimizer.zero_grad()
        (-box.mean()).backward()
        optimizer.step()


class Language(nn.Module):
    def __init__(self, tied):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(9, 6), nn.GRU(6, 6, batch_first=True)
        self.head = nn.Linear(6, 9, bias=False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


@right
def tied_and_untied_language_models():
    for tied in (True, False):
        model = copy.deepcopy(Language(tied))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(5):
            text = torch.randint(9, (4, 7))
            optimizer.zero_grad()
            F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten()).backward()
            optimizer.step()


@right
def layers_that_begin_as_copies():
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
            self.one = nn.Linear(4, 4)
            self.two = copy.deepcopy(self.one)

        def forward(self, x):
            return self.two(self.one(self.encoder(x))).mean(1)

    model = Deep()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        x = torch.randn(6, 3, 4)
        optimizer.zero_grad()
        F.mse_loss(model(x), x.sum(1)).backward()
        optimizer.step()


@right
def decoder_that_begins_as_the_turned_encoder():
    class Unrolled(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = nn.Linear(6, 3), nn.Linear(3, 6)
            with torch.no_grad():
                self.decoder.weight.copy_(self.encoder.weight.t())

        def forward(self, x):
            return self.decoder(self.encoder(x).tanh())

    model = Unrolled()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        x = torch.randn(8, 6)
        optimizer.zero_grad()
        F.mse_loss(model(x), x).backward()
        optimizer.step()


def normed(out=1):
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, out))


def learn_lines(model, after, steps=8):
    x, y = lines()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        model.train()
        optimizer.zero_grad()
        F.mse_loss(model(3 * x + 2), y).backward()
        optimizer.step()
        with torch.no_grad():
            after(step, 3 * x + 2)


@right
def average_that_takes_the_buffers():
    model = normed()
    smooth = copy.deepcopy(model).eval()

    def after(step, x):
        for mine, theirs in zip(smooth.parameters(), model.parameters(), strict=True):
            mine.lerp_(theirs, 0.3)
        for mine, theirs in zip(smooth.buffers(), model.buffers(), strict=True):
            mine.copy_(theirs)
        smooth(x)

    learn_lines(model, after)


@right
def best_model_kept_and_evaluated():
    model = normed()
    kept = []

    def after(step, x):
        if step in (2, 5):
            kept.append(copy.deepcopy(model).eval())
        if kept:
            kept[-1](x)

    learn_lines(model, after)


@right
def random_network_that_stays_as_it_was_made():
    model, fixed = normed(), normed().eval().requires_grad_(False)
    learn_lines(model, lambda step, x: fixed(x))


@right
def mean_of_weights_with_its_own_statistics():
    model = normed()
    mean = AveragedModel(model)

    def after(step, x):
        mean.update_parameters(model)
        if step % 3 == 2:
            update_bn([x[:8], x[8:]], mean)
            mean.eval()
            mean(x)

    learn_lines(model, after)


@right
def moving_average_of_pytorch():
    model = normed()
    smooth = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))

    def after(step, x):
        smooth.update_parameters(model)
        smooth.eval()
        smooth(x)

    learn_lines(model, after)
