"""Right loops whose batches look spent, or whose rows look apart, and are not."""

import itertools
import random

import numpy as np
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from tests.audit.parts import batches, blobs, mlp
from tests.audit.registry import right


def _teach(model, optimizer, rows, labels):
    optimizer.zero_grad()
    F.cross_entropy(model(rows), labels).backward()
    optimizer.step()


@right
def iterator_made_in_each_epoch():
    data = DataLoader(TensorDataset(*blobs()), batch_size=4)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        stream = iter(data)
        for rows, labels in stream:
            _teach(model, optimizer, rows, labels)


@right
def endless_stream_cut_into_epochs():
    stream = itertools.cycle(batches(*blobs()))
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        for rows, labels in itertools.islice(stream, 5):
            _teach(model, optimizer, rows, labels)


class Rewinding:
    """An iterator that begins again when it has ended."""

    def __init__(self, rows):
        self.rows, self.at = rows, 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.at == len(self.rows):
            self.at = 0
            raise StopIteration
        self.at += 1
        return self.rows[self.at - 1]


@right
def iterator_that_rewinds_itself():
    stream = Rewinding(batches(*blobs()))
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        for rows, labels in stream:
            _teach(model, optimizer, rows, labels)


@right
def warm_up_in_the_first_round_only():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    few = zip(x[:8].split(4), y[:8].split(4), strict=True)
    for epoch in range(3):
        if epoch == 0:
            for rows, labels in few:
                _teach(model, optimizer, rows, labels)
        else:
            for rows, labels in batches(x, y):
                _teach(model, optimizer, rows, labels)


@right
def one_stream_that_ends_early():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    stream = zip(x.split(4), y.split(4), strict=True)
    for _ in range(5):
        count = 0
        for rows, labels in stream:
            _teach(model, optimizer, rows, labels)
            count += 1
        if not count:
            break


@right
def one_order_of_numpy_for_both():
    x, y = (it.numpy() for it in blobs())
    chance = np.random.default_rng(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        order = chance.permutation(len(x))
        for rows in order.reshape(-1, 4):
            _teach(model, optimizer, torch.tensor(x[rows]), torch.tensor(y[rows]))


@right
def two_shuffles_from_the_same_state():
    x, y = blobs()
    rows, labels = list(x), y.tolist()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        state = random.getstate()
        random.shuffle(rows)
        random.setstate(state)
        random.shuffle(labels)
        _teach(model, optimizer, torch.stack(rows), torch.tensor(labels))


@right
def pairs_shuffled_together():
    x, y = blobs()
    pairs = list(zip(x, y, strict=True))
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        random.shuffle(pairs)
        rows, labels = zip(*pairs, strict=True)
        _teach(model, optimizer, torch.stack(rows), torch.stack(labels))


@right
def two_data_sets_in_their_own_orders():
    x, y = (it.numpy() for it in blobs())
    other = np.random.randn(16, 4).astype("float32") + 1
    chance = np.random.default_rng(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        labelled, free = chance.permutation(len(x)), chance.permutation(len(other))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(torch.tensor(x[labelled])), torch.tensor(y[labelled]))
        gap = model(torch.tensor(other[free])).mean() - model(torch.tensor(x[labelled])).mean()
        (loss + 0.1 * gap.abs()).backward()
        optimizer.step()


@right
def numbers_shuffled_in_place_after_one_order_for_both():
    chance = np.random.default_rng(0)
    images, labels = (it.numpy() for it in blobs(24))
    order = torch.from_numpy(chance.permutation(len(images)))
    images, labels = images[order], labels[order]
    rows, targets, wanted = torch.tensor(images), torch.tensor(labels), torch.eye(3)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        numbers = np.arange(len(rows))
        chance.shuffle(numbers)
        for at in range(0, len(numbers), 8):
            own = torch.from_numpy(numbers[at : at + 8])
            x, y = rows[own], wanted[targets[own]]
            share, mixed = float(chance.beta(0.4, 0.4)), torch.from_numpy(chance.permutation(len(x)))
            _teach(
                model,
                optimizer,
                share * x + (1 - share) * x[mixed],
                share * y + (1 - share) * y[mixed],
            )


@right
def windows_shuffled_whose_rows_were_put_in_order_before():
    chance = np.random.default_rng(0)
    x, y = (it.numpy() for it in blobs(24))
    order = chance.permutation(24)
    x, y = x[order], y[order]
    windows = [(x[at : at + 8], y[at : at + 8]) for at in (0, 8, 16)]
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        random.shuffle(windows)
        for rows, labels in windows:
            _teach(model, optimizer, torch.tensor(rows), torch.tensor(labels))


@right
def columns_in_an_order_of_their_own():
    chance = np.random.default_rng(0)
    x, y = (it.numpy() for it in blobs(24))
    columns = chance.permutation(4)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = x[:, columns]
    for _ in range(3):
        order = chance.permutation(24)
        _teach(model, optimizer, torch.tensor(inputs[order]), torch.tensor(y[order]))
