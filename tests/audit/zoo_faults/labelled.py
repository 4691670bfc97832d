"""Losses whose labels are coded otherwise, or name one row for all; draws that make the frequent more frequent."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from tests.audit.parts import binary, epoch_of, mlp
from tests.audit.registry import fault


@fault("loss-argument")
def hinge_of_zeros_and_ones():
    def loss(scores, y):
        return torch.clamp(1 - y * scores, min=0).mean()  # <- here

    epoch_of(nn.Linear(4, 1), loss, *binary())


@fault("loss-argument")
def squared_hinge_in_a_module():
    class Hinge(nn.Module):
        def forward(self, scores, labels):
            margins = scores.squeeze(1) * labels
            return F.relu(1.0 - margins).pow(2).sum()  # <- here

    x, y = binary()
    epoch_of(mlp(out=1), Hinge(), x, y.squeeze(1))


@fault("loss-argument")
def logistic_loss_of_zeros_and_ones():
    def loss(scores, y):
        return F.softplus(-y * scores).mean()  # <- here

    epoch_of(nn.Linear(4, 1), loss, *binary())


@fault("loss-argument")
def logistic_loss_by_its_logarithm():
    x, y = binary()
    epoch_of(mlp(out=1), lambda scores, y: -F.logsigmoid(y * scores).mean(), x, y)  # <- here


@fault("loss-argument")
def pairs_marked_once_by_zero():
    model = mlp(4, 6)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    a, b = torch.randn(16, 4), torch.randn(16, 4)
    same = (a.sum(1) * b.sum(1) > 0).float()
    for _ in range(6):
        optimizer.zero_grad()
        loss = F.cosine_embedding_loss(model(a), model(b), same)  # <- here
        loss.backward()
        optimizer.step()


def two_views(loss_of, steps=5):
    """Train an encoder on two views of points, by what `loss_of` makes of what it gives."""
    encoder = mlp(4, 6)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
    for _ in range(steps):
        x = torch.randn(12, 4)
        views = [F.normalize(encoder(x + 0.1 * torch.randn_like(x)), dim=1) for _ in range(2)]
        optimizer.zero_grad()
        loss_of(*views).backward()
        optimizer.step()


@fault("loss-argument")
def zeros_as_the_labels_of_a_contrast():
    def loss(a, b):
        labels = torch.zeros(len(a), dtype=torch.long)
        return F.cross_entropy(a @ b.T / 0.1, labels)  # <- here

    two_views(loss)


@fault("loss-argument")
def one_label_for_both_directions():
    criterion, scale = nn.CrossEntropyLoss(), torch.tensor(2.0)

    def loss(a, b):
        scores = scale.exp() * torch.matmul(a, b.t())
        wanted = torch.ones(len(scores)).long()
        return (criterion(scores, wanted) + criterion(scores.T, wanted)) / 2  # <- here

    two_views(loss)


@fault("compared-with-itself")
def diagonal_filled_with_zeros():
    def loss(a, b):
        z = torch.cat([a, b])
        scores = z @ z.T / 0.5
        scores = scores.masked_fill(torch.eye(len(z), dtype=torch.bool), 0)  # <- here
        rows = torch.arange(len(a))
        return F.cross_entropy(scores, torch.cat([rows + len(a), rows]))

    two_views(loss)


@fault("compared-with-itself")
def diagonal_multiplied_by_zeros():
    def loss(a, b):
        z = torch.cat([a, b])
        others = 1 - torch.eye(len(z))
        scores = torch.mm(z, z.t()) * others  # <- here
        chances = F.log_softmax(scores / 0.2, dim=1)
        rows = torch.arange(len(a))
        return -chances[torch.arange(len(z)), torch.cat([rows + len(a), rows])].mean()

    two_views(loss)


@fault("compared-with-itself")
def diagonal_put_to_zero_in_place():
    def loss(a, b):
        z = torch.cat([a, b])
        scores = (z @ z.T) / 0.5
        scores.fill_diagonal_(0.0)  # <- here
        rows = torch.arange(len(a))
        wanted = scores.gather(1, torch.cat([rows + len(a), rows])[:, None]).squeeze(1)
        return (scores.logsumexp(dim=1) - wanted).mean()

    two_views(loss)


@fault("softmax-axis")
def student_compared_along_the_batch():
    teacher, student = mlp().eval(), nn.Linear(4, 3)
    optimizer = torch.optim.Adam(student.parameters(), lr=0.01)
    for _ in range(6):
        x = torch.randn(16, 4)
        with torch.no_grad():
            known = teacher(x)
        own = F.log_softmax(student(x) / 2, 0)  # <- here
        optimizer.zero_grad()
        (F.kl_div(own, F.softmax(known / 2, 0), reduction="batchmean") * 4).backward()
        optimizer.step()


def _drawn(weigh):
    x = torch.randn(120, 4)
    y = (torch.arange(120) % 10 == 0).long()
    loader = DataLoader(TensorDataset(x, y), 24, sampler=weigh(y))
    model = mlp(out=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for points, labels in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(points), labels).backward()
        optimizer.step()


@fault("weights-reversed")
def rows_drawn_by_how_frequent_they_are():
    def sampler(y):
        weights = torch.bincount(y).float()[y]  # <- here
        return WeightedRandomSampler(weights, len(y))

    _drawn(sampler)


@fault("weights-reversed")
def rows_drawn_by_shares_of_classes():
    def sampler(y):
        counts = torch.bincount(y)
        shares = counts / counts.sum()
        weights = [float(shares[label]) for label in y]  # <- here
        return WeightedRandomSampler(weights, num_samples=len(weights), replacement=True)

    _drawn(sampler)


@fault("weights-reversed")
def rows_drawn_by_counts_given_directly():
    def sampler(y):
        counts = {0: int((y == 0).sum()), 1: int((y == 1).sum())}
        return WeightedRandomSampler([counts[int(label)] for label in y], 96)  # <- here

    _drawn(sampler)


class Packed(nn.Module):
    """A layer that reads packed sequences; `end` says what is taken of what it gives."""

    def __init__(self, batch_first=True):
        super().__init__()
        self.first = batch_first
        self.rnn, self.head = nn.GRU(3, 8, batch_first=batch_first), nn.Linear(8, 2)

    def read(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=self.first, enforce_sorted=False)
        return pad_packed_sequence(self.rnn(packed)[0], batch_first=self.first)


def reads_uneven(model, steps=5, first=True):
    """Train a reader on sequences of unlike lengths."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        lengths = torch.randint(2, 8, (9,))
        x = torch.randn(9, 7, 3) * (torch.arange(7) < lengths[:, None])[..., None]
        optimizer.zero_grad()
        scores = model(x if first else x.transpose(0, 1), lengths)
        F.cross_entropy(scores, (x[:, 0, 0] > 0).long()).backward()
        optimizer.step()


@fault("padded-step")
def last_place_of_what_was_packed():
    class Reader(Packed):
        def forward(self, x, lengths):
            out, _ = self.read(x, lengths)
            return self.head(out[:, -1])  # <- here

    reads_uneven(Reader())


@fault("padded-step")
def last_place_along_the_first_axis_of_what_was_packed():
    class Reader(Packed):
        def forward(self, x, lengths):
            steps = F.dropout(self.read(x, lengths)[0], 0.1)
            return self.head(steps[-1])  # <- here

    reads_uneven(Reader(batch_first=False), first=False)


@fault("padded-step")
def last_place_after_a_projection_of_what_was_packed():
    class Reader(Packed):
        def forward(self, x, lengths):
            out, _ = self.read(x, lengths)
            scores = self.head(out)
            return scores[:, -1, :]  # <- here

    reads_uneven(Reader())


def contrasted(side, steps=5):
    """Train an encoder on two views of points, of which `side` makes what is compared."""
    encoder = mlp(4, 6)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
    for _ in range(steps):
        x = torch.randn(12, 4)
        a, b = (side(encoder(x + 0.1 * torch.randn_like(x))) for _ in range(2))
        optimizer.zero_grad()
        F.cross_entropy(a @ b.T / 0.1, torch.arange(len(x))).backward()
        optimizer.step()


@fault("normalised-axis")
def length_of_one_over_the_batch():
    contrasted(lambda z: F.normalize(z, dim=0))  # <- here


@fault("normalised-axis")
def divided_by_the_lengths_of_columns():
    def side(z):
        return z / z.norm(dim=0, keepdim=True)  # <- here

    contrasted(side)


@fault("normalised-axis")
def one_side_over_the_batch():
    encoder = mlp(4, 6)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
    for _ in range(5):
        x = torch.randn(12, 4)
        queries, keys = F.normalize(encoder(x), dim=-1), F.normalize(encoder(x + 0.1), p=2, dim=0)  # <- here
        scores = torch.mm(queries, keys.t()) * 10
        optimizer.zero_grad()
        (-scores.log_softmax(dim=1).diagonal().mean()).backward()
        optimizer.step()
