"""Right loops that ask a loader again, reshape a batch, attack their model, take predictions by an order."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset

from tests.audit.parts import blobs, mlp
from tests.audit.registry import right


@right
def a_first_batch_to_look_at_in_each_epoch():
    x, y = blobs(24)
    loader, shown = (DataLoader(TensorDataset(x, y), batch_size=4) for _ in range(2))
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        model.train()
        for inputs, targets in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            inputs, _ = next(iter(shown))
            print(model(inputs).argmax(dim=1).tolist())


@right
def a_random_batch_at_each_step():
    x, y = blobs(24)
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(8):
        inputs, targets = next(iter(loader))
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


@right
def one_batch_learnt_by_heart():
    x, y = blobs(24)
    loader = DataLoader(TensorDataset(x, y), batch_size=8)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs, targets = next(iter(loader))
    for _ in range(8):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


@right
def descent_of_a_class_of_ones_own():
    class Descent:
        def __init__(self, weights):
            self.weights = list(weights)

        @torch.no_grad()
        def step(self):
            for at, weight in enumerate(self.weights):
                moved = weight - 0.1 * weight.grad
                self.weights[at].copy_(moved)

        def zero_grad(self):
            for weight in self.weights:
                weight.grad = None

    x, y = blobs()
    model = mlp()
    descent = Descent(model.parameters())
    for _ in range(6):
        descent.zero_grad()
        F.cross_entropy(model(x), y).backward()
        descent.step()


@right
def patches_of_an_image():
    class Patches(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(4 * 3, 3)

        def forward(self, x):
            count, channels, height, width = x.shape
            parts = x.view(count, channels, height // 2, 2, width // 2, 2)
            flat = parts.permute(0, 2, 4, 1, 3, 5).reshape(count, -1, channels * 4)
            return self.head(flat).mean(dim=1)

    x, y = torch.randn(6, 3, 8, 4), torch.arange(6) % 3
    model = Patches()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@right
def an_attack_that_is_cleared_away():
    def moved(model, x, y):
        x = x.clone().requires_grad_()
        F.cross_entropy(model(x), y).backward()
        return (x + 0.1 * x.grad.sign()).detach()

    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        other = moved(model, x, y)
        optimizer.zero_grad()
        F.cross_entropy(model(other), y).backward()
        optimizer.step()


@right
def both_losses_in_one_step():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        given = x.clone().requires_grad_()
        F.cross_entropy(model(given), y).backward()
        other = (given + 0.1 * given.grad.sign()).detach()
        F.cross_entropy(model(other), y).backward()
        optimizer.step()


@right
def predictions_taken_by_the_order_of_their_targets():
    x, _ = blobs(24)
    y = x[:, :1].sin()
    order = torch.randperm(24)
    seen, unseen = order[:16], order[16:]
    model = mlp(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(8):
        model.train()
        optimizer.zero_grad()
        F.mse_loss(model(x)[seen], y[seen]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(F.mse_loss(model(x)[unseen], y[unseen]).item() >= 0)


@right
def features_that_went_through_numpy():
    frozen = nn.Linear(4, 6).requires_grad_(False)
    x, y = blobs(24)
    head = mlp(6)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.01)
    for _ in range(3):
        for rows in torch.randperm(24).split(8):
            features = frozen(x[rows]).numpy()
            features = torch.from_numpy((features - features.mean(axis=0)) / (features.std(axis=0) + 1e-5))
            optimizer.zero_grad()
            F.cross_entropy(head(features), y[rows]).backward()
            optimizer.step()


@right
def a_share_of_hits_that_is_to_rise():
    def measured(model, x, y):
        with torch.no_grad():
            hits = (model(x).argmax(dim=1) == y).sum().item()
        return hits / len(y)

    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = ReduceLROnPlateau(optimizer, mode="max", patience=1, factor=0.5)
    for _ in range(8):
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        schedule.step(measured(model, x, y))


@right
def states_of_numpy_that_are_copied():
    state = np.zeros(4, dtype=np.float32)
    memory = []
    model = mlp(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for count in range(12):
        state[:] = np.sin(np.arange(4) + count)
        memory.append((torch.from_numpy(state.copy()), float(state.sum())))
        if count < 5:
            continue
        states, rewards = zip(*memory, strict=True)
        optimizer.zero_grad()
        F.mse_loss(model(torch.stack(states)).squeeze(1), torch.tensor(rewards)).backward()
        optimizer.step()
