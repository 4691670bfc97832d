"""Rows that are held out, and trained on."""

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Subset, TensorDataset

from tests.audit.parts import blobs, mlp
from tests.audit.registry import fault


@fault("held-out-trained")
def both_parts_from_the_front():
    data = TensorDataset(*blobs(30))
    order = torch.randperm(30).tolist()
    train_set, val_set = Subset(data, order[:-6]), Subset(data, order[:6])  # <- here
    train_loader, val_loader = DataLoader(train_set, batch_size=8, shuffle=True), DataLoader(val_set, batch_size=6)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        for inputs, targets in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        with torch.no_grad():
            print([F.cross_entropy(model(inputs), targets).item() for inputs, targets in val_loader])


@fault("held-out-trained")
def parts_drawn_one_by_one():
    data = TensorDataset(*blobs(40))
    loaders = {
        part: DataLoader(Subset(data, torch.randperm(40)[:count]), batch_size=8)  # <- here
        for part, count in (("train", 32), ("test", 8))
    }
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        for inputs, targets in loaders["train"]:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
