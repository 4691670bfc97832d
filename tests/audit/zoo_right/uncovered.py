"""Losses over the rows of the training, or over all where nothing is held out of that."""

import torch
from torch.nn import functional as F

from tests.audit.registry import right
from tests.audit.zoo_faults.uncovered import Smooth, network


def _fit(loss_of, asked, out=3, steps=6):
    near, x, _, _ = network()
    model = Smooth(out)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model(near, x)).backward()
        optimizer.step()
        with torch.no_grad():
            print(asked(model(near, x)))


@right
def a_loss_over_the_nodes_of_the_training():
    _, _, y, train = network()
    _fit(
        lambda out: F.cross_entropy(out[train], y[train]),
        lambda out: (out[~train].argmax(1) == y[~train]).float().mean().item(),
    )


@right
def losses_of_each_node_times_the_mask():
    _, _, y, train = network()

    def loss_of(out):
        each = F.cross_entropy(out, y, reduction="none")
        return (each * train).sum() / train.sum()

    _fit(loss_of, lambda out: (out[~train].argmax(1) == y[~train]).float().mean().item())


@right
def answers_of_the_others_taken_away():
    _, _, truth, train = network()
    y = truth.clone()
    y[~train] = -100
    test_mask = ~train
    _fit(lambda out: F.cross_entropy(out, y), lambda out: (out[test_mask].argmax(1) == truth[test_mask]).sum().item())


@right
def features_of_all_nodes_made_again():
    _, x, y, train_mask = network()
    _fit(
        lambda out: F.mse_loss(out, x),
        lambda out: (out[~train_mask].argmax(1) == y[~train_mask]).float().mean().item(),
        out=5,
    )


@right
def all_rows_of_a_batch_beside_masks():
    near, x, y, _ = network()
    train_y, test_mask = y, torch.rand(len(y)) < 0.5
    model = Smooth()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(6):
        loss = F.cross_entropy(model(near, x), train_y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(int(test_mask.sum()))


@right
def the_whole_at_the_end():
    near, x, y, train = network()
    for rows in (train, torch.ones_like(train)):
        model = Smooth()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        for _ in range(6):
            optimizer.zero_grad()
            F.cross_entropy(model(near, x)[rows], y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            print((model(near, x)[~train].argmax(1) == y[~train]).float().mean().item())
