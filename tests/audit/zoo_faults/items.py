"""Data sets that read the same row for each index, or input and target of two."""

import numpy as np
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from tests.audit.parts import blobs, mlp
from tests.audit.registry import fault


class Points(Dataset):
    """Points and their classes; what is given for an index is left open."""

    def __init__(self):
        self.x, self.y = blobs(40)
        self.order = torch.randperm(40)
        self.at = 0

    def __len__(self):
        return len(self.x)


def read(data, epochs=2):
    """Train a classifier on what a data set gives."""
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for x, y in DataLoader(data, 10, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


@fault("sample-misread")
def first_of_the_order_for_each():
    class First(Points):
        def __getitem__(self, index):
            row = self.order[0]  # <- here
            return self.x[row], self.y[row]

    read(First())


@fault("sample-misread")
def place_that_nothing_moves():
    class Stuck(Points):
        def __getitem__(self, index):
            return self.x[self.at], self.y[self.at]  # <- here

    read(Stuck())


@fault("sample-misread")
def variable_of_a_loop_that_has_ended():
    x, y = blobs(40)
    for i in range(40):
        x[i] = x[i] / x[i].norm()

    class Leftover(Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, idx):
            return x[i].clone(), y[idx]  # <- here

    read(Leftover())


@fault("sample-misread")
def target_by_the_index_and_input_by_an_order():
    class Apart(Points):
        def __getitem__(self, index):
            row = self.order[index]
            return self.x[row], self.y[index]  # <- here

    read(Apart())


@fault("sample-misread")
def input_by_the_index_and_target_by_an_order():
    class Apart(Points):
        def __getitem__(self, i):
            point = self.x[i].float()
            label = self.y[self.order[i].item()]
            return point, label  # <- here

    read(Apart())


@fault("sample-misread")
def arrays_in_two_orders():
    class Arrays(Dataset):
        def __init__(self, x, y):
            self.points, self.labels = x, y
            self.rows = np.random.default_rng(0).permutation(len(x))

        def __len__(self):
            return len(self.points)

        def __getitem__(self, index):
            return self.points[int(self.rows[index])], self.labels[index]  # <- here

    read(Arrays(*blobs(40)))
