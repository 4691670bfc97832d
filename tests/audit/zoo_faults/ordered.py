"""Data that come in the order in which they are stored."""

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from tests.audit.parts import mlp
from tests.audit.registry import fault


def _sorted(each=8, classes=4):
    y = torch.arange(classes).repeat_interleave(each)
    return torch.randn(len(y), 4) + y[:, None], y


@fault("sorted-batches")
def a_loader_that_is_handed_over():
    def one_epoch(model, loader, optimizer):
        for inputs, targets in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()

    model = mlp(out=4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    data = DataLoader(TensorDataset(*_sorted()), batch_size=8)  # <- here
    for _ in range(3):
        one_epoch(model, data, optimizer)


@fault("sorted-batches")
def slices_of_sorted_rows():
    x, y = _sorted(each=10, classes=3)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(4):
        for start in range(0, len(x), 5):  # <- here
            optimizer.zero_grad()
            logp = F.log_softmax(model(x[start : start + 5]), dim=1)
            (F.nll_loss(logp, y[start : start + 5]) / 2).backward()
            optimizer.step()


@fault("sorted-batches")
def batches_across_the_ends_of_classes():
    x, y = _sorted(each=26)
    model = mlp(out=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=False, drop_last=True)  # <- here
    for _ in range(3):
        for at, (inputs, targets) in enumerate(loader):
            loss = F.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if at % 5 == 0:
                print(loss.item())
