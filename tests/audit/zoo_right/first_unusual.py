"""Right loops that look wrong to a simple check."""

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from tests.audit.parts import Dropping, batches, blobs, lines, mlp
from tests.audit.registry import right


@right
def step_in_backward():
    x, y = blobs()
    model = mlp()
    optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}

    def update(p):
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(update)
    for _ in range(6):
        F.cross_entropy(model(x), y).backward()


@right
def checkpointed():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for reentrant in (False, True, False, True):
        optimizer.zero_grad()
        hidden = checkpoint(model[:2], x.clone().requires_grad_(), use_reentrant=reentrant)
        F.cross_entropy(model[2](hidden), y).backward()
        optimizer.step()


@right
def model_agnostic_meta_learning():
    model = mlp(out=1)
    outer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(4):
        outer.zero_grad()
        for _ in range(2):
            x, y = lines()
            weights = dict(model.named_parameters())
            inner = F.mse_loss(functional_call(model, weights, (x[:8],)), y[:8])
            slopes = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
            quick = {name: w - 0.1 * s for (name, w), s in zip(weights.items(), slopes, strict=True)}
            (F.mse_loss(functional_call(model, quick, (x[8:],)), y[8:]) / 2).backward()
        outer.step()


@right
def reptile():
    model = mlp(out=1)
    for _ in range(3):
        before = [p.detach().clone() for p in model.parameters()]
        inner = torch.optim.SGD(model.parameters(), lr=0.05)
        x, y = lines()
        for _ in range(3):
            inner.zero_grad()
            F.mse_loss(model(x), y).backward()
            inner.step()
        with torch.no_grad():
            for p, old in zip(model.parameters(), before, strict=True):
                p.copy_(old + 0.5 * (p - old))


@right
def truncated_backpropagation():
    cell, head = nn.LSTMCell(3, 5), nn.Linear(5, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.05)
    h, c = torch.zeros(2, 5), torch.zeros(2, 5)
    for _ in range(5):
        loss = 0
        for _ in range(4):
            h, c = cell(torch.randn(2, 3), (h, c))
            loss = loss + head(h).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        h, c = h.detach(), c.detach()


@right
def sharpness_aware():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        moves = []
        with torch.no_grad():
            for p in model.parameters():
                moves.append(0.05 * p.grad / (p.grad.norm() + 1e-12))
                p.add_(moves[-1])
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        with torch.no_grad():
            for p, move in zip(model.parameters(), moves, strict=True):
                p.sub_(move)
        optimizer.step()


@right
def monte_carlo_dropout():
    x, y = blobs()
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        draws = torch.stack([model(x).softmax(1) for _ in range(5)])
    print(draws.var(0).mean().item())


@right
def stochastic_weight_averaging():
    x, y = blobs()
    model = Dropping()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    average = torch.optim.swa_utils.AveragedModel(model)
    for _ in range(3):
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        average.update_parameters(model)
    torch.optim.swa_utils.update_bn(batches(x, y), average)


@right
def contrastive():
    encoder = mlp(out=6)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
    for _ in range(5):
        x = torch.randn(8, 4)
        one = F.normalize(encoder(x + 0.1 * torch.randn_like(x)), dim=1)
        two = F.normalize(encoder(x + 0.1 * torch.randn_like(x)), dim=1)
        optimizer.zero_grad()
        F.cross_entropy(one @ two.T / 0.2, torch.arange(8)).backward()
        optimizer.step()
