"""Faults in graphs: kept, retained, cut in the wrong place, written to behind autograd's back."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import fault


@fault("kept-losses")
def list_of_losses():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)  # <- here
    print(float(sum(losses)) / len(losses))


@fault("running-total")
def total_with_graphs():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = 0
    for _ in range(10):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss  # <- here
    print(float(total))


@fault("carried-state", "not-in-optimizer")
def hidden_state_never_cut():
    cell = nn.RNNCell(3, 5)
    head = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.01)
    h = torch.zeros(2, 5)
    for _ in range(10):
        h = cell(torch.randn(2, 3), h)  # <- here
        loss = head(h).pow(2).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()


@fault("needless-retain")
def retained_for_nobody():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward(retain_graph=True)  # <- here
        optimizer.step()


@fault("needless-create-graph")
def created_for_nobody():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward(create_graph=True)  # <- here
        optimizer.step()


@fault("data-write")
def written_through_data():
    x, y = lines()
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        hidden = model[1](model[0](x))
        out = model[2](hidden)
        hidden.data.clamp_(-0.5, 0.5)  # <- here
        optimizer.zero_grad()
        F.mse_loss(out, y).backward()
        optimizer.step()


@fault("discarded-detach", "carried-state", "not-in-optimizer")
def detach_without_taking_it():
    cell, head = nn.RNNCell(3, 5), nn.Linear(5, 1)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.01)
    h = torch.zeros(2, 5)
    for _ in range(6):
        h.detach()  # <- here
        h = cell(torch.randn(2, 3), h)
        loss = head(h).pow(2).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()


@fault("wrapped-loss")
def loss_made_anew():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss = torch.tensor(loss.item(), requires_grad=True)  # <- here
        loss.backward()
        optimizer.step()


def _gan():
    generator, critic = mlp(2, 4), mlp(4, 1)
    g = torch.optim.Adam(generator.parameters(), lr=0.01)
    d = torch.optim.Adam(critic.parameters(), lr=0.01)
    return generator, critic, g, d


@fault("gan-detach")
def generator_never_learns():
    generator, critic, g, d = _gan()
    bce = nn.BCEWithLogitsLoss()
    real = torch.randn(8, 4)
    for _ in range(6):
        fake = generator(torch.randn(8, 2))
        d.zero_grad()
        loss = bce(critic(real), torch.ones(8, 1)) + bce(critic(fake.detach()), torch.zeros(8, 1))
        loss.backward()
        d.step()
        g.zero_grad()
        bce(critic(fake.detach()), torch.ones(8, 1)).backward()  # <- here
        g.step()


@fault("gan-detach")
def generator_learns_the_critics_loss():
    generator, critic, g, d = _gan()
    bce = nn.BCEWithLogitsLoss()
    real = torch.randn(8, 4)
    for _ in range(6):
        g.zero_grad()
        d.zero_grad()
        fake = generator(torch.randn(8, 2))
        loss = bce(critic(real), torch.ones(8, 1)) + bce(critic(fake), torch.zeros(8, 1))
        loss.backward()  # <- here
        d.step()
        bce(critic(generator(torch.randn(8, 2))), torch.ones(8, 1)).backward()
        g.step()


@fault("wrong-loss")
def critic_moved_by_the_actor():
    actor, critic = mlp(4, 2), mlp(6, 1)
    a = torch.optim.Adam(actor.parameters(), lr=0.01)
    c = torch.optim.Adam(critic.parameters(), lr=0.01)
    for _ in range(6):
        state, action, value = torch.randn(8, 4), torch.randn(8, 2), torch.randn(8, 1)
        a.zero_grad()
        c.zero_grad()
        loss = -critic(torch.cat([state, actor(state)], 1)).mean()
        loss.backward()
        a.step()
        F.mse_loss(critic(torch.cat([state, action], 1)), value).backward()  # <- here
        c.step()


@fault("silent-function")
def a_backward_without_return():
    class Clip(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clamp(-1, 1)

        @staticmethod
        def backward(ctx, grad):  # <- here
            grad * 2

    x, y = blobs()
    body, head = nn.Linear(4, 8), nn.Linear(8, 3)
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(head(Clip.apply(body(x))), y).backward()
        optimizer.step()
