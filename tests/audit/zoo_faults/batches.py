"""Batches that run out, or whose rows and labels do not belong together."""

import random

import numpy as np
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import fault


@fault("iterator-spent")
def pairs_zipped_before_the_epochs():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    pairs = zip(x.split(4), y.split(4), strict=True)  # <- here
    for _ in range(3):
        for i, (rows, labels) in enumerate(pairs):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(rows), labels)
            loss.backward()
            optimizer.step()
            if i == 2:
                print(loss.item())


@fault("iterator-spent")
def generator_given_to_a_trainer():
    class Regression:
        """A trainer that is handed what it goes through."""

        def __init__(self, model, stream):
            self.model, self.stream = model, stream
            self.optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

        def learn(self, rows, wanted):
            self.optimizer.zero_grad()
            F.mse_loss(self.model(rows), wanted).backward()
            self.optimizer.step()

        def epoch(self):
            for rows, wanted in self.stream:  # <- here
                self.learn(rows, wanted)

        def fit(self, epochs):
            for number in range(epochs):
                self.epoch()
                with torch.no_grad():
                    print(number, self.model(torch.zeros(1, 4)).item())

    Regression(mlp(4, 1), (it for it in batches(*lines()))).fit(4)


def _one_epoch(model, optimizer, data):
    total = 0.0
    for rows, labels in data:
        loss = F.cross_entropy(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


@fault("iterator-spent")
def loader_asked_for_its_iterator_too_early():
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    shuffled = iter(DataLoader(TensorDataset(*blobs()), batch_size=4, shuffle=True))  # <- here
    losses = []
    for _epoch in range(5):
        model.train()
        losses.append(_one_epoch(model, optimizer, shuffled))


def _learn(model, optimizer, rows, labels):
    optimizer.zero_grad()
    F.cross_entropy(model(rows), labels).backward()
    optimizer.step()


@fault("shuffled-apart")
def two_shuffles_of_numpy_in_place():
    points, labels = (it.numpy().copy() for it in blobs())
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        np.random.shuffle(points)
        np.random.shuffle(labels)  # <- here
        for at in range(0, 16, 8):
            _learn(model, optimizer, torch.tensor(points[at : at + 8]), torch.tensor(labels[at : at + 8]))


@fault("shuffled-apart")
def two_lists_shuffled_by_python():
    x, y = blobs()
    rows, targets = list(x), y.tolist()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        random.shuffle(rows)
        random.shuffle(targets)  # <- here
        _learn(model, optimizer, torch.stack(rows), torch.tensor(targets))


@fault("shuffled-apart")
def orders_drawn_in_a_data_class():
    class Table:
        def __init__(self, x, y):
            self.x, self.y = x.numpy(), y.numpy()
            self.chance = np.random.default_rng(0)

        def in_order(self):
            first = self.chance.permutation(len(self.x))
            second = self.chance.permutation(len(self.y))  # <- here
            for at in range(0, len(first), 4):
                yield torch.tensor(self.x[first[at : at + 4]]), torch.tensor(self.y[second[at : at + 4]])

    table = Table(*blobs())
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        for rows, labels in table.in_order():
            _learn(model, optimizer, rows, labels)


@fault("shuffled-apart")
def numbers_of_rows_and_of_labels_shuffled_each_by_themselves():
    x, y = (it.numpy() for it in blobs())
    chance = np.random.default_rng(0)
    mine = np.arange(len(x))
    theirs = list(range(len(y)))
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        chance.shuffle(mine)
        chance.shuffle(theirs)  # <- here
        for at in range(0, 16, 8):
            _learn(model, optimizer, torch.tensor(x[mine[at : at + 8]]), torch.tensor(y[theirs[at : at + 8]]))


@fault("shuffled-apart")
def second_input_in_an_order_of_its_own():
    x, y = (it.numpy() for it in blobs())
    words = x[:, :2] * 2
    chance = np.random.default_rng(0)
    model = mlp(6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        order = chance.permutation(16)
        other = chance.permutation(16)  # <- here
        rows = np.concatenate([x[order], words[other]], axis=1)
        _learn(model, optimizer, torch.tensor(rows), torch.tensor(y[order]))
