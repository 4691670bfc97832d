"""Right splits of data, also those where one part is measured that is trained on."""

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Subset, TensorDataset, random_split

from tests.audit.parts import blobs, mlp
from tests.audit.registry import right


def _fit(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        for inputs, targets in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@right
def accuracy_on_rows_of_the_training():
    data = TensorDataset(*blobs(30))
    train_set, val_set = random_split(data, [24, 6])
    train_eval = Subset(data, train_set.indices[:8])
    model = mlp()
    _fit(model, DataLoader(train_set, batch_size=8))
    with torch.no_grad():
        for part in (train_eval, val_set):
            print(
                [F.cross_entropy(model(inputs), targets).item() for inputs, targets in DataLoader(part, batch_size=8)]
            )


@right
def folds_that_hold_out_each_row_once():
    data = TensorDataset(*blobs(24))
    for fold in torch.arange(24).split(8):
        val_set = Subset(data, fold.tolist())
        train_set = Subset(data, [row for row in range(24) if row not in set(fold.tolist())])
        model = mlp()
        _fit(model, DataLoader(train_set, batch_size=8))
        with torch.no_grad():
            print([model(inputs).argmax(1).tolist() for inputs, _ in DataLoader(val_set, batch_size=8)])
