"""A loader that begins anew, a batch read the other way round, an attack with a pass of its own, and their like."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import fault


@fault("never-drawn")
def the_first_batch_at_each_step():
    x, y = blobs(24)
    loader = DataLoader(TensorDataset(x, y), batch_size=4)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(8):
        inputs, targets = next(iter(loader))  # <- here
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


@fault("view-not-transpose")
def a_batch_that_is_read_the_other_way_round():
    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.head = nn.Conv1d(3, 4, 3), nn.Linear(4, 1)

        def forward(self, x):
            count, time, width = x.shape
            return self.head(self.conv(x.view(count, width, time)).mean(dim=2)).squeeze(1)  # <- here

    x = torch.randn(8, 6, 3)
    y = x[:, -1].sum(dim=1)
    model = Steps()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


@fault("wrong-loss")
def an_attack_that_leaves_gradients_in_the_weights():
    def moved(model, x, y):
        x = x.clone().requires_grad_()
        F.cross_entropy(model(x), y).backward()  # <- here
        return (x + 0.1 * x.grad.sign()).detach()

    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(moved(model, x, y)), y)
        loss.backward()
        optimizer.step()


@fault("not-in-optimizer")
def a_scale_that_is_no_parameter():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = mlp()
            self.scale = torch.zeros(()).requires_grad_()  # <- here

        def forward(self, x):
            return self.scale.exp() * self.body(x)

    x, y = blobs()
    model = Scaled()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("plateau-direction")
def a_share_of_hits_that_a_function_returns():
    def measured(model, x, y):
        with torch.no_grad():
            hits = (model(x).argmax(dim=1) == y).sum().item()
        return hits / len(y)

    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = ReduceLROnPlateau(optimizer, patience=1, factor=0.7)  # <- here
    for _ in range(10):
        for _ in range(4):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        found = measured(model, x, y)
        schedule.step(found)


@fault("kept-by-reference")
def states_that_numpy_writes_into():
    state = np.zeros(4, dtype=np.float32)
    memory = []
    model = mlp(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for count in range(12):
        state[:] = np.sin(np.arange(4) + count)
        memory.append((torch.from_numpy(state), float(state.sum())))
        if count < 5:
            continue
        states, rewards = zip(*memory, strict=True)
        x, y = torch.stack(states), torch.tensor(rewards)  # <- here
        optimizer.zero_grad()
        F.mse_loss(model(x).squeeze(1), y).backward()
        optimizer.step()


@fault("data-drifts")
def slices_that_a_function_shakes():
    def shaken(rows):
        rows.add_(0.1 * torch.randn_like(rows))  # <- here
        return rows

    x, y = lines(24)
    model = mlp(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(4):
        for start in range(0, 24, 8):
            rows, wanted = x[start : start + 8], y[start : start + 8]
            optimizer.zero_grad()
            F.mse_loss(model(shaken(rows)), wanted).backward()
            optimizer.step()


@fault("optimizer-anew")
def an_optimizer_for_each_step_of_a_model_with_a_scale():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.scale = mlp(), nn.Parameter(torch.tensor(1.0))

        def forward(self, x):
            return self.scale * self.body(x)

    def one_step(model, x, y):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)  # <- here
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    x, y = blobs()
    model = Scaled()
    for _ in range(8):
        one_step(model, x, y)
