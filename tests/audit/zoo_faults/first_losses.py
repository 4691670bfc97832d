"""Faults in losses: a softmax too many, a logarithm too few, shapes that broadcast, NaN."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import fault


@fault("softmax-twice")
def softmax_before_cross_entropy():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        probabilities = model(x).softmax(dim=1)  # <- here
        F.cross_entropy(probabilities, y).backward()
        optimizer.step()


@fault("softmax-twice")
def model_ends_in_softmax():
    x, y = blobs()
    model = nn.Sequential(
        nn.Linear(4, 3),
        nn.Softmax(dim=1),  # <- here
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()


@fault("sigmoid-twice")
def sigmoid_before_logits():
    x, _ = lines()
    y = (x.sum(1) > 0).float()
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        p = torch.sigmoid(model(x)).squeeze(1)  # <- here
        F.binary_cross_entropy_with_logits(p, y).backward()
        optimizer.step()


@fault("log-missing")
def probabilities_in_nll():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        p = F.softmax(model(x), dim=1)
        F.nll_loss(p, y).backward()  # <- here
        optimizer.step()


@fault("log-missing")
def scores_in_nll():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss_fn = nn.NLLLoss()
    for _ in range(6):
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()  # <- here
        optimizer.step()


@fault("broadcast-loss")
def column_against_row():
    x, y = lines()
    y = y.squeeze(1)
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()  # <- here
        optimizer.step()


@fault("broadcast-loss")
def difference_by_hand():
    x, y = lines()
    y = y.squeeze(1)
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()  # <- here
        loss.backward()
        optimizer.step()


@fault("nan-began")
def logarithm_of_nothing():
    x, _ = blobs()
    model = mlp(out=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        p = model(x).relu()
        entropy = p * p.log()  # <- here
        entropy.mean().backward()
        optimizer.step()


@fault("nan-began")
def root_of_nothing():
    x, _ = blobs()
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    target = model(x).detach().clone()
    for _ in range(4):
        optimizer.zero_grad()
        distance = (model(x) - target).pow(2).sum(dim=1).sqrt()  # <- here
        distance.mean().backward()
        optimizer.step()
