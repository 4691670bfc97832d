"""Splits with a model of their own, and rounds that never hold out what was trained on before."""

import copy

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import right


def _fit(model, x, y, steps=3):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


def _folds(count, parts):
    chunks = torch.randperm(count).chunk(parts)
    for at, held in enumerate(chunks):
        yield torch.cat([*chunks[:at], *chunks[at + 1 :]]), held


@right
def a_model_made_for_each_fold():
    x, y = lines(30)
    for train_idx, val_idx in _folds(30, 3):
        model = mlp(out=1)
        _fit(model, x[train_idx], y[train_idx])
        with torch.no_grad():
            print(F.mse_loss(model(x[val_idx]), y[val_idx]).item())


@right
def one_model_set_back_for_each_fold():
    x, y = lines(30)
    model = mlp(out=1)
    start = copy.deepcopy(model.state_dict())
    for train_idx, val_idx in _folds(30, 3):
        model.load_state_dict(start)
        _fit(model, x[train_idx], y[train_idx])
        with torch.no_grad():
            print(F.mse_loss(model(x[val_idx]), y[val_idx]).item())


@right
def one_model_with_layers_reset_for_each_fold():
    x, y = lines(30)
    model = mlp(out=1)
    for train_idx, val_idx in _folds(30, 3):
        for layer in model:
            if hasattr(layer, "reset_parameters"):
                layer.reset_parameters()
        _fit(model, x[train_idx], y[train_idx])
        model.eval()
        with torch.no_grad():
            print(F.mse_loss(model(x[val_idx]), y[val_idx]).item())
        model.train()


@right
def a_window_that_moves_on_in_time():
    x, y = lines(40)
    model = mlp(out=1)
    for end in range(10, 40, 10):
        train_idx, test_idx = list(range(end)), list(range(end, end + 10))
        _fit(model, x[train_idx], y[train_idx])
        with torch.no_grad():
            print(F.mse_loss(model(x[test_idx]), y[test_idx]).item())


@right
def tasks_with_rows_of_their_own():
    model = mlp(out=1)
    for _ in range(3):
        x, y = lines(20)
        order = torch.randperm(20)
        train_idx, val_idx = order[:15], order[15:]
        _fit(model, x[train_idx], y[train_idx])
        with torch.no_grad():
            print(F.mse_loss(model(x[val_idx]), y[val_idx]).item())


@right
def data_of_one_client_after_the_other():
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    clients = [TensorDataset(*blobs(20)) for _ in range(3)]
    for client in clients:
        train_part, val_part = random_split(client, [15, 5])
        for inputs, targets in DataLoader(train_part, batch_size=5):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        with torch.no_grad():
            for inputs, targets in DataLoader(val_part, batch_size=5):
                print(F.cross_entropy(model(inputs), targets).item())


@right
def one_split_for_all_epochs():
    x, y = lines(24)
    model = mlp(out=1)
    for _ in range(4):
        order = torch.arange(24)
        train_idx, val_idx = order[:18], order[18:]
        _fit(model, x[train_idx], y[train_idx])
        with torch.no_grad():
            print(F.mse_loss(model(x[val_idx]), y[val_idx]).item())
