"""Data that are prepared in another way for what is held out, or with the labels of what is held out."""

import numpy as np
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from tests.audit.parts import mlp
from tests.audit.registry import fault
from tests.audit.selecting import SelectKBest, train_test_split


class StandardScaler:
    """As scikit-learn's: it is told of by its name."""

    def fit_transform(self, x):
        self.mean, self.spread = x.mean(axis=0), x.std(axis=0)
        return self.transform(x)

    def transform(self, x):
        return (x - self.mean) / self.spread


def _raw(count=48, width=4):
    x = torch.tensor([50.0, 3.0, 900.0, 20.0][:width]) * (1 + 0.2 * torch.randn(count, width))
    return x, (x[:, 0] > 50).long()


def _fit(model, x, y, ask, epochs=3):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(12):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            print(model(ask).argmax(1).float().mean().item())


@fault("scaled-apart")
def a_scaler_for_the_training_part_alone():
    x, y = _raw()
    x_train, x_test, y_train = x[:32].numpy(), x[32:], y[:32]
    scaler = StandardScaler()
    x_train = torch.tensor(scaler.fit_transform(x_train), dtype=torch.float32)  # <- here
    _fit(mlp(out=2), x_train, y_train, x_test)


@fault("scaled-apart")
def scaled_in_the_training_loop_only():
    x, y = _raw(60)
    mean, std = x[:40].mean(dim=0), x[:40].std(dim=0)
    train_loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=10, shuffle=True)
    val_loader = DataLoader(TensorDataset(x[40:], y[40:]), batch_size=10)
    model = mlp(out=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        for inputs, targets in train_loader:
            inputs = (inputs - mean) / std  # <- here
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        with torch.no_grad():
            for inputs, targets in val_loader:
                print((model(inputs).argmax(1) == targets).float().mean().item())


@fault("selected-by-all")
def a_selector_fitted_before_the_split():
    rng = np.random.default_rng(0)
    features, target = rng.normal(size=(60, 40)), rng.normal(size=60)
    selector = SelectKBest(4)
    selector.fit(features, target)  # <- here
    chosen = selector.transform(features)
    x_train, x_test, y_train, _ = train_test_split(chosen, target, 0.25)
    model = mlp(width=4, out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        loss = F.mse_loss(model(torch.tensor(x_train).float())[:, 0], torch.tensor(y_train).float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(model(torch.tensor(x_test).float()).mean().item())


@fault("selected-by-all")
def columns_ranked_by_their_correlation():
    x, y = torch.randn(60, 40), torch.randint(2, (60,))
    score = ((x - x.mean(dim=0)) * (y - y.float().mean())[:, None]).mean(dim=0).abs()  # <- here
    best = score.topk(4).indices
    x = x[:, best]
    order = torch.randperm(60)
    train, test = order[:45], order[45:]
    x_train, x_test, y_train = x[train], x[test], y[train]
    _fit(mlp(out=2), x_train, y_train, x_test)
