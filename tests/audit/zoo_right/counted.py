"""Right loops that look as if their loss counted what is no part of the task."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from tests.audit.parts import mlp
from tests.audit.registry import right


def _contrast(loss_of):
    model = mlp(out=6)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        x = torch.randn(12, 4)
        views = x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
        loss = loss_of(*(F.normalize(model(view), dim=1) for view in views))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def selves_are_masked_before_the_softmax():
    def loss_of(one, other):
        z = torch.cat([one, other])
        scores = (z @ z.T / 0.5).masked_fill(torch.eye(len(z), dtype=torch.bool), -1e9)
        return F.cross_entropy(scores, torch.arange(len(z)).roll(len(one)))

    _contrast(loss_of)


@right
def selves_are_taken_from_the_sum():
    def loss_of(one, other):
        z = torch.cat([one, other])
        e = torch.exp(z @ z.T / 0.5)
        total = e.sum(dim=1) - torch.exp(torch.tensor(2.0))
        return -torch.log(torch.exp((one * other).sum(dim=1) / 0.5).repeat(2) / total).mean()

    _contrast(loss_of)


@right
def two_views_against_each_other():
    def loss_of(one, other):
        scores = one @ other.T / 0.2
        target = torch.arange(len(one))
        return (F.cross_entropy(scores, target) + F.cross_entropy(scores.T, target)) / 2

    _contrast(loss_of)


@right
def each_row_is_to_know_itself():
    def loss_of(one, other):
        return F.cross_entropy(one @ one.T / 0.2, torch.arange(len(one))) + F.mse_loss(one, other)

    _contrast(loss_of)


@right
def a_student_learns_its_teacher_s_relations():
    teacher = mlp(out=6).eval().requires_grad_(False)

    def loss_of(one, other):
        wanted = torch.cat([one, other]).detach() @ teacher[2].weight
        wanted = F.softmax(wanted @ wanted.T, dim=1)
        z = torch.cat([one, other])
        return F.kl_div(F.log_softmax(z @ z.T / 0.5, dim=1), wanted, reduction="batchmean")

    _contrast(loss_of)


class Tagger(nn.Module):
    def __init__(self, out=4):
        super().__init__()
        self.embed = nn.Embedding(9, 6, padding_idx=0)
        self.rnn, self.head = nn.GRU(6, 8, batch_first=True, bidirectional=True), nn.Linear(16, out)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


def _tag(loss_of):
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        words = [torch.randint(1, 9, (int(it),)) for it in torch.randint(3, 10, (8,))]
        tokens = pad_sequence(words, batch_first=True)
        tags = pad_sequence([it % 3 + 1 for it in words], batch_first=True)
        optimizer.zero_grad()
        loss_of(model(tokens), tags).backward()
        optimizer.step()


@right
def padding_is_ignored():
    _tag(lambda scores, tags: F.cross_entropy(scores.transpose(1, 2), tags, ignore_index=0))


@right
def padding_weighs_nothing():
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([0.0, 1.0, 1.0, 1.0]))
    _tag(lambda scores, tags: criterion(scores.flatten(0, 1), tags.flatten()))


@right
def padding_is_masked_after_the_loss():
    def loss_of(scores, tags):
        losses = F.cross_entropy(scores.flatten(0, 1), tags.flatten(), reduction="none")
        return (losses * (tags.flatten() > 0)).sum() / (tags > 0).sum()

    _tag(loss_of)


@right
def padding_is_left_out_before_the_loss():
    _tag(lambda scores, tags: F.cross_entropy(scores[tags > 0], tags[tags > 0]))


@right
def predictions_and_targets_of_series_are_both_masked():
    rnn, head = nn.GRU(2, 8, batch_first=True), nn.Linear(8, 1)
    optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()], lr=0.01)
    for _ in range(5):
        rows = [torch.randn(int(it), 2) for it in torch.randint(3, 10, (6,))]
        x = pad_sequence(rows, batch_first=True)
        y = pad_sequence([it.sum(dim=1).cumsum(dim=0) for it in rows], batch_first=True)
        lengths = torch.tensor([len(it) for it in rows])
        real = torch.arange(x.shape[1]) < lengths[:, None]
        states = pad_packed_sequence(rnn(pack_padded_sequence(x, lengths, True, enforce_sorted=False))[0], True)[0]
        loss = F.mse_loss(head(states).squeeze(-1) * real, y * real) * real.numel() / real.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Recurrent(nn.Module):
    """Scores for each step of a text, in one direction or in both."""

    def __init__(self, both=False, out=9):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(9, 6), nn.GRU(6, 8, batch_first=True, bidirectional=both)
        self.head = nn.Linear(16 if both else 8, out)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


def _read(model, loss_of):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        loss = loss_of(model, torch.randint(1, 9, (4, 8)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def labels_that_are_moved_on_by_one():
    _read(Recurrent(), lambda model, text: F.cross_entropy(model(text)[:, :-1].transpose(1, 2), text[:, 1:]))


@right
def hidden_words_from_both_sides():
    def loss_of(model, text):
        hidden = torch.rand(text.shape) < 0.3
        hidden[:, 0] = True
        return F.cross_entropy(model(text.masked_fill(hidden, 0)).flatten(0, 1), text.flatten())

    _read(Recurrent(both=True), loss_of)


@right
def a_text_written_again_from_its_last_state():
    class Again(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.read = nn.Embedding(9, 6), nn.GRU(6, 8, batch_first=True)
            self.write, self.head = nn.GRU(8, 8, batch_first=True), nn.Linear(8, 9)

        def forward(self, text):
            _, state = self.read(self.embed(text))
            return self.head(self.write(state[0][:, None].expand(-1, text.shape[1], -1), state)[0])

    _read(Again(), lambda model, text: F.cross_entropy(model(text).transpose(1, 2), text))


@right
def tags_of_words_by_one_direction():
    _read(Recurrent(out=3), lambda model, text: F.cross_entropy(model(text).transpose(1, 2), text % 3))
