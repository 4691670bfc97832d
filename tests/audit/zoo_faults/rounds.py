"""Losses of several rounds, of which the last one alone is trained."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, mlp
from tests.audit.registry import fault

ASKED = {"kind": lambda out, y: F.cross_entropy(out, y), "first": lambda out, y: F.mse_loss(out[:, 0], y.float())}


def heads(*names, width=8):
    return nn.ModuleDict({name: nn.Linear(width, 3) for name in names})


@fault("last-of-loop")
def several_tasks_of_which_the_last_is_trained():
    trunk, tops = mlp(out=8), heads(*ASKED)
    optimizer = torch.optim.Adam([*trunk.parameters(), *tops.parameters()], lr=0.01)
    total = 0.0
    for _ in range(6):
        x, y = blobs()
        h = trunk(x)
        optimizer.zero_grad()
        for name, loss_of in ASKED.items():
            loss = loss_of(tops[name](h), y)  # <- here
            total += loss.item()
        loss.backward()
        optimizer.step()
    print(total)


@fault("last-of-loop")
def several_sources_with_one_model():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        parts = [blobs(), blobs(), blobs()]
        for x, y in parts:
            scores = model(x)
            loss = ((scores - F.one_hot(y, 3)) ** 2).mean()  # <- here
            print(float(loss))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("last-of-loop")
def exits_of_which_the_last_is_trained():
    class Exits(nn.Module):
        def __init__(self):
            super().__init__()
            self.trunk = nn.Linear(4, 8)
            self.tops = nn.ModuleList([nn.Linear(8, 3) for _ in range(3)])

        def step(self, x, y):
            h = torch.tanh(self.trunk(x))
            for top in self.tops:
                loss = F.cross_entropy(top(h), y)  # <- here
            loss.backward()

    model = Exits()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        model.step(*blobs())
        optimizer.step()


@fault("last-of-loop")
def columns_of_targets():
    model = mlp(out=3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        x, _ = blobs()
        wanted = x[:, :3].cos()
        out = model(x)
        optimizer.zero_grad()
        for column in range(3):
            loss = F.smooth_l1_loss(out[:, column], wanted[:, column])  # <- here
        (loss / 3).backward()
        optimizer.step()
