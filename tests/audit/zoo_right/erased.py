"""Writes by chance into copies, into buffers that are filled again, and into what is meant to change."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, mlp
from tests.audit.registry import right


@right
def features_hidden_in_a_copy():
    def hide(x, share):
        x = x.clone()
        x[torch.rand(x.shape) < share] = 0.0
        return x

    x, y = blobs(24)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(12):
        optimizer.zero_grad()
        F.cross_entropy(model(hide(x, 0.2)), y).backward()
        optimizer.step()


@right
def a_buffer_filled_anew_and_then_stirred():
    x, y = blobs(24)
    model, buffer = mlp(), torch.empty(24, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(12):
        buffer.copy_(x)
        buffer += 0.1 * torch.randn_like(buffer)
        optimizer.zero_grad()
        F.cross_entropy(model(buffer), y).backward()
        optimizer.step()


@right
def features_hidden_and_put_back():
    x, y = blobs(24)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(12):
        hidden = torch.rand(x.shape) < 0.2
        kept = x[hidden]
        x[hidden] = 0.0
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        x[hidden] = kept


@right
def a_chain_of_samples_that_moves_on():
    x, _ = blobs(24)
    energy, chain = mlp(out=1), torch.randn(24, 4)
    optimizer = torch.optim.Adam(energy.parameters(), lr=0.01)
    for _ in range(10):
        start = chain.clone().requires_grad_()
        slope = torch.autograd.grad(energy(start).sum(), start)[0]
        chain -= 0.1 * slope + 0.05 * torch.randn_like(slope)
        loss = energy(x).mean() - energy(chain).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def a_memory_whose_rows_are_replaced():
    memory = torch.randn(24, 4)
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(12):
        fresh = torch.randn(6, 4)
        memory[torch.randint(24, (6,))] = fresh
        optimizer.zero_grad()
        F.mse_loss(model(memory), memory.sum(dim=1, keepdim=True)).backward()
        optimizer.step()


@right
def words_masked_in_rows_taken_by_index():
    words = torch.randint(1, 9, (24, 12))
    model = nn.Sequential(nn.Embedding(9, 8), nn.Tanh(), nn.Linear(8, 9))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        for rows in torch.randperm(24).split(8):
            given = words[rows]
            given[torch.rand(given.shape) < 0.15] = 0
            optimizer.zero_grad()
            F.cross_entropy(model(given).flatten(0, 1), words[rows].flatten()).backward()
            optimizer.step()


@right
def dropout_in_place_behind_a_layer():
    x, y = blobs(24)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2, inplace=True), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(12):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@right
def walkers_that_move_in_place():
    walkers, model = torch.randn(24, 2), mlp(width=2, out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(12):
        before = walkers.clone()
        walkers += 0.1 * torch.randn_like(walkers)
        optimizer.zero_grad()
        F.mse_loss(model(before), walkers.norm(dim=1, keepdim=True)).backward()
        optimizer.step()
