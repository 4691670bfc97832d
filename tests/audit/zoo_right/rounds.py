"""Losses of several rounds that are all trained, or of which the last one holds the others."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, mlp
from tests.audit.registry import right
from tests.audit.zoo_faults.rounds import ASKED, heads


@right
def several_tasks_in_one_total():
    trunk, tops = mlp(out=8), heads(*ASKED)
    optimizer = torch.optim.Adam([*trunk.parameters(), *tops.parameters()], lr=0.01)
    for _ in range(6):
        x, y = blobs()
        h, total = trunk(x), 0.0
        for name, loss_of in ASKED.items():
            loss = loss_of(tops[name](h), y)
            total = total + loss
        optimizer.zero_grad()
        total.backward()
        optimizer.step()


@right
def losses_in_a_list():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        found = []
        for x, y in (blobs(), blobs()):
            loss = F.cross_entropy(model(x), y)
            found.append(loss)
        loss = torch.stack(found).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def a_pass_for_each_round():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        for x, y in (blobs(), blobs()):
            loss = F.cross_entropy(model(x), y) / 2
            loss.backward()
        optimizer.step()


@right
def the_last_state_of_a_recurrence():
    cell, head = nn.GRUCell(4, 8), nn.Linear(8, 3)
    optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=0.01)
    for _ in range(6):
        x, y = torch.randn(8, 5, 4), torch.randint(3, (8,))
        h = torch.zeros(8, 8)
        for step in range(5):
            h = cell(x[:, step], h)
            loss = F.cross_entropy(head(h) / (1 + step), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def a_loss_of_all_that_was_put_aside():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        outs, wanted = [], []
        for x, y in (blobs(), blobs()):
            outs.append(model(x))
            wanted.append(y)
            loss = F.cross_entropy(torch.cat(outs), torch.cat(wanted)[: 16 * len(y)])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def inner_steps_before_the_outer_loss():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        weights = dict(model.named_parameters())
        for x, y in (blobs(), blobs()):
            loss = F.cross_entropy(torch.func.functional_call(model, weights, (x,)), y)
            slopes = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
            weights = {key: it - 0.1 * slope for (key, it), slope in zip(weights.items(), slopes, strict=True)}
            x, y = blobs()
            loss = F.cross_entropy(torch.func.functional_call(model, weights, (x,)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def a_model_that_keeps_its_state():
    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.head = nn.Linear(4, 8), nn.Linear(8, 3)
            self.state = None

        def forward(self, x):
            self.state = torch.tanh(self.inner(x) + (0 if self.state is None else 0.5 * self.state))
            return self.head(self.state)

    model = Keeps()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        x, y = torch.randn(8, 5, 4), torch.randint(3, (8,))
        model.state = None
        for step in range(5):
            loss = F.cross_entropy(model(x[:, step]), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def a_loop_of_one_round():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        only = [blobs()]
        for x, y in only:
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
