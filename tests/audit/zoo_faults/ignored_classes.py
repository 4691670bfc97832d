"""A class that is left out of the loss, though samples have it."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, epoch_of, mlp
from tests.audit.registry import fault


@fault("loss-argument")
def first_class_left_out_by_a_module():
    criterion = nn.CrossEntropyLoss(ignore_index=0)  # <- here
    epoch_of(mlp(), lambda scores, y: criterion(scores, y), *blobs(64), rate=0.1)


@fault("loss-argument")
def last_class_left_out():
    model, (x, y) = mlp(), blobs(64)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y, ignore_index=2).backward()  # <- here
        optimizer.step()


@fault("loss-argument")
def a_normal_class_taken_for_no_class():
    healthy = 1

    def loss(scores, y):
        return F.cross_entropy(scores / 2, y, ignore_index=healthy, reduction="sum") / len(y)  # <- here

    epoch_of(nn.Sequential(nn.BatchNorm1d(4), mlp()), loss, *blobs(64))
