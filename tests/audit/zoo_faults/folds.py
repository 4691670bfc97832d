"""One model for all splits: what is held out later was trained on before."""

import numpy as np
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Subset, TensorDataset, random_split

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import fault


@fault("held-out-trained")
def folds_by_hand_with_one_model():
    x, y = lines(30)
    model = mlp(out=1)  # <- here
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    folds = torch.randperm(30).chunk(3)
    for k in range(3):
        val_idx = folds[k]
        train_idx = torch.cat([fold for at, fold in enumerate(folds) if at != k])
        for _ in range(4):
            optimizer.zero_grad()
            F.mse_loss(model(x[train_idx]), y[train_idx]).backward()
            optimizer.step()
            with torch.no_grad():
                print(k, F.mse_loss(model(x[val_idx]), y[val_idx]).item())


@fault("held-out-trained")
def a_new_optimizer_for_an_old_model():
    def splits(count, parts):
        order = np.random.default_rng(0).permutation(count)
        for held in np.array_split(order, parts):
            yield np.setdiff1d(order, held), held

    def fit(net, loader):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net.train()
        for inputs, targets in loader:
            optimizer.zero_grad()
            F.cross_entropy(net(inputs), targets).backward()
            optimizer.step()

    data = TensorDataset(*blobs(30))
    net = mlp()  # <- here
    for train_rows, test_rows in splits(30, 3):
        fit(net, DataLoader(Subset(data, train_rows.tolist()), batch_size=8, shuffle=True))
        net.eval()
        with torch.no_grad():
            for inputs, targets in DataLoader(Subset(data, test_rows.tolist()), batch_size=10):
                print((net(inputs).argmax(1) == targets).float().mean().item())


@fault("held-out-trained")
def a_split_drawn_again_in_each_epoch():
    data = TensorDataset(*blobs(32))
    model = mlp()  # <- here
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(4):
        train_part, val_part = random_split(data, [24, 8])
        for inputs, targets in DataLoader(train_part, batch_size=8):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        with torch.no_grad():
            for inputs, targets in DataLoader(val_part, batch_size=8):
                print(F.cross_entropy(model(inputs), targets).item())
