"""Losses that count what is no part of the task: rows against themselves, padding, the token that is given."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from tests.audit.parts import mlp
from tests.audit.registry import fault


def _views(count=12):
    x = torch.randn(count, 4)
    return x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)


@fault("compared-with-itself")
def cosines_of_two_views_with_their_diagonal():
    model = mlp(out=6)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        both = torch.cat([model(view) for view in _views()])
        likeness = F.cosine_similarity(both[:, None], both[None], dim=-1)  # <- here
        n = len(both) // 2
        positive = torch.arange(2 * n).roll(n)
        optimizer.zero_grad()
        F.cross_entropy(likeness / 0.2, positive).backward()
        optimizer.step()


@fault("compared-with-itself")
def supervised_contrast_by_a_mask_of_classes():
    def contrast(z, labels):
        z = F.normalize(z, dim=1)
        logits = torch.matmul(z, z.T)  # <- here
        same = labels[:, None].eq(labels[None]).float()
        same = same - torch.eye(len(same))
        log_prob = F.log_softmax(logits / 0.1, dim=1)
        return -((log_prob * same).sum(1) / same.sum(1).clamp(min=1)).mean()

    model = mlp(out=6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        labels = torch.arange(12) % 3
        loss = contrast(model(torch.randn(12, 4) + labels[:, None]), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("compared-with-itself")
def a_ratio_of_exponentials_by_hand():
    model = mlp(out=6)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        one, other = (F.normalize(model(view), dim=1) for view in _views())
        z = torch.cat([one, other])
        e = torch.exp(z @ z.mT / 0.5)  # <- here
        pos = torch.exp((one * other).sum(dim=1) / 0.5).repeat(2)
        loss = -torch.log(pos / e.sum(dim=1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def _texts(count=8, longest=9):
    lengths = torch.randint(3, longest + 1, (count,))
    return [torch.randint(1, 9, (int(length),)) for length in lengths], lengths


class Tagger(nn.Module):
    def __init__(self, out=4, padding=0):
        super().__init__()
        self.embed = nn.Embedding(9, 6, padding_idx=padding)
        self.rnn, self.head = nn.GRU(6, 8, batch_first=True, bidirectional=True), nn.Linear(16, out)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


@fault("padding-counted")
def tags_of_padding_by_classes_in_the_second_axis():
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        words, _ = _texts()
        tokens = pad_sequence(words, batch_first=True)
        tags = pad_sequence([it % 3 + 1 for it in words], batch_first=True)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens).transpose(1, 2), tags)  # <- here
        loss.backward()
        optimizer.step()


@fault("padding-counted")
def a_number_at_each_step_of_packed_series():
    class Series(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = nn.LSTM(2, 8), nn.Linear(8, 1)

        def forward(self, x, lengths):
            packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
            return self.head(pad_packed_sequence(self.rnn(packed)[0])[0]).squeeze(-1)

    model = Series()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = nn.MSELoss()  # <- here
    for _ in range(5):
        rows = [torch.randn(int(it), 2) for it in torch.randint(3, 10, (6,))]
        x, y = pad_sequence(rows), pad_sequence([it.sum(dim=1).cumsum(dim=0) for it in rows])
        prediction = model(x, torch.tensor([len(it) for it in rows]))
        optimizer.zero_grad()
        criterion(prediction, y).backward()
        optimizer.step()


@fault("padding-counted")
def attention_knows_the_padding_and_the_loss_does_not():
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(9, 8), nn.Linear(8, 4)
            self.mix = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

        def forward(self, tokens, padding):
            return self.head(self.mix(self.embed(tokens), src_key_padding_mask=padding)).log_softmax(dim=-1)

    model = Encoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        words, lengths = _texts()
        tokens = torch.zeros(8, 9, dtype=torch.long)
        tags = torch.full((8, 9), 3)
        for row, word in enumerate(words):
            tokens[row, : len(word)], tags[row, : len(word)] = word, word % 3
        logp = model(tokens, torch.arange(9) >= lengths[:, None])
        optimizer.zero_grad()
        F.nll_loss(logp.flatten(0, 1), tags.flatten()).backward()  # <- here
        optimizer.step()


class Recurrent(nn.Module):
    """A language model of one direction, with scores for each step."""

    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(9, 6), nn.LSTM(6, 8, batch_first=True), nn.Linear(8, 9)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


@fault("not-shifted")
def a_recurrent_model_that_says_what_it_reads():
    model = Recurrent()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    for _ in range(5):
        text = torch.randint(9, (4, 8))
        optimizer.zero_grad()
        loss = criterion(model(text).transpose(1, 2), text)  # <- here
        loss.backward()
        optimizer.step()


@fault("not-shifted")
def scores_and_labels_cut_at_the_same_end():
    class Causal(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.qkv, self.head = nn.Embedding(9, 8), nn.Linear(8, 24), nn.Linear(8, 9)

        def forward(self, tokens):
            x = self.embed(tokens)
            q, k, v = self.qkv(x).chunk(3, dim=-1)
            x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return F.log_softmax(self.head(x), dim=-1)

    model = Causal()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        tokens = torch.randint(1, 9, (4, 8))
        labels = torch.where(torch.arange(8) < 6, tokens, -100)
        logp = model(tokens)[:, :-1]
        loss = F.nll_loss(logp.reshape(-1, 9), labels[:, :-1].reshape(-1))  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
