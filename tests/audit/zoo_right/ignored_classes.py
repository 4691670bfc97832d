"""Targets that are left out of a loss: by a number that is no class, or where tokens stand for nothing."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, epoch_of, mlp
from tests.audit.registry import right


@right
def a_number_that_is_no_class():
    x, y = blobs(64)
    y[::4] = -1
    epoch_of(mlp(), lambda scores, y: F.cross_entropy(scores, y, ignore_index=-1), x, y)


@right
def a_number_beyond_the_classes():
    x, y = blobs(64)
    y[::4] = 255
    epoch_of(mlp(), nn.CrossEntropyLoss(ignore_index=255), x, y)


@right
def first_token_of_a_table_left_out():
    words = torch.randint(4, (48, 5))
    model = nn.Sequential(nn.Embedding(4, 8), nn.Linear(8, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for rows in torch.randperm(48).split(8):
        scores = model(words[rows][:, :-1])
        optimizer.zero_grad()
        F.cross_entropy(scores.flatten(0, 1), words[rows][:, 1:].flatten(), ignore_index=0).backward()
        optimizer.step()


@right
def pictures_whose_first_number_stands_for_nothing():
    x, y = torch.randn(16, 1, 4, 4), torch.randint(3, (16, 4, 4))
    net = nn.Conv2d(1, 3, 1)
    epoch_of(net, lambda scores, y: F.cross_entropy(scores, y, ignore_index=0), x, y)


@right
def a_class_that_is_rare_and_left_out():
    x, y = blobs(64)
    y[y == 0] = 1
    epoch_of(mlp(), lambda scores, y: F.cross_entropy(scores, y, ignore_index=0), x, y)
