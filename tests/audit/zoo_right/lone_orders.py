"""One thing that is shuffled, with nothing left behind."""

import random

import numpy as np
import torch

from tests.audit.parts import blobs, mlp
from tests.audit.registry import right
from tests.audit.zoo_faults.lone_orders import stepped


@right
def numbers_of_rows_shuffled():
    inputs, labels = blobs(32)
    order = np.arange(32)
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        np.random.shuffle(order)
        for start in range(0, 32, 8):
            batch = order[start : start + 8]
            stepped(model, optimizer, inputs[batch], labels[batch])


@right
def pairs_shuffled():
    pairs = list(zip(*blobs(32), strict=True))
    random.shuffle(pairs)
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for start in range(0, 32, 8):
        x, y = zip(*pairs[start : start + 8], strict=True)
        stepped(model, optimizer, torch.stack(x), torch.stack(y))


@right
def both_shuffled_by_one_state():
    x, y = (it.numpy() for it in blobs(32))
    state = np.random.get_state()
    np.random.shuffle(x)
    np.random.set_state(state)
    np.random.shuffle(y)
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for start in range(0, 32, 8):
        stepped(model, optimizer, x[start : start + 8], y[start : start + 8])


@right
def rows_without_labels_shuffled_beside_others():
    x, y = (it.numpy() for it in blobs(32))
    unlabelled = blobs(32)[0].numpy()
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        np.random.shuffle(unlabelled)
        for start in range(0, 32, 8):
            stepped(model, optimizer, x[start : start + 8], y[start : start + 8])
            model(torch.from_numpy(unlabelled[start : start + 8]))
