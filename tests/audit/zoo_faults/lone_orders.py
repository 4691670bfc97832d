"""Rows that are put into another order, while their labels stay where they were."""

import random

import numpy as np
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from tests.audit.parts import blobs, mlp
from tests.audit.registry import fault


def stepped(model, optimizer, x, y):
    optimizer.zero_grad()
    F.cross_entropy(model(torch.as_tensor(x)), torch.as_tensor(y)).backward()
    optimizer.step()


@fault("shuffled-apart")
def rows_shuffled_where_they_are():
    rng = np.random.default_rng(0)
    inputs, labels = (it.numpy() for it in blobs(32))
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        rng.shuffle(inputs)  # <- here
        for start in range(0, 32, 8):
            stepped(model, optimizer, inputs[start : start + 8], labels[start : start + 8])


@fault("shuffled-apart")
def rows_in_a_new_order_before_a_data_set():
    x_train, y_train = (it.numpy() for it in blobs(32))
    x_train = np.random.permutation(x_train)  # <- here
    data = TensorDataset(torch.from_numpy(x_train), torch.from_numpy(y_train))
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for x, y in DataLoader(data, 8):
        stepped(model, optimizer, x, y)


@fault("shuffled-apart")
def a_list_of_rows_shuffled_and_its_targets_not():
    x, y = blobs(24)
    samples, targets = list(x), list(y)
    random.shuffle(samples)  # <- here
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for first in range(0, 24, 8):
        stepped(model, optimizer, torch.stack(samples[first : first + 8]), torch.stack(targets[first : first + 8]))
