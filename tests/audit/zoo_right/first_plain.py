"""Loops as most people write them, and their usual variations."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import Dropping, batches, blobs, lines, mlp
from tests.audit.registry import right


@right
def plain():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(8):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


@right
def epochs_with_validation():
    x, y = blobs(24)
    model = Dropping()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    history, best = [], None
    for _ in range(3):
        model.train()
        total = 0.0
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(inputs)
        scheduler.step()
        model.eval()
        with torch.no_grad():
            correct = sum((model(inputs).argmax(1) == targets).sum().item() for inputs, targets in batches(x, y))
        history.append((total / 24, correct / 24))
        best = copy.deepcopy(model.state_dict())
    model.load_state_dict(best)


@right
def cleared_at_the_end():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters())
    for inputs, targets in batches(x, y) * 3:
        out = model(inputs)
        loss = ((out - targets) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)


@right
def cleared_by_hand():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(8):
        for p in model.parameters():
            if p.grad is not None:
                p.grad.data.zero_()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


@right
def plain_tensors_and_no_optimizer():
    x, y = lines(width=1)
    w = torch.zeros(1, 1, requires_grad=True)
    b = torch.zeros(1, requires_grad=True)
    for _ in range(10):
        loss = (x @ w + b - y).pow(2).mean()
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            b -= 0.1 * b.grad
            w.grad.zero_()
            b.grad.zero_()


@right
def accumulation():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad()
    for _ in range(2):
        for at, (inputs, targets) in enumerate(batches(x, y)):
            (F.cross_entropy(model(inputs), targets) / 4).backward()
            if (at + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()


@right
def accumulation_with_an_uneven_end():
    x, y = blobs(40)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    parts = batches(x, y)
    for first in range(0, len(parts), 4):
        window = parts[first : first + 4]
        optimizer.zero_grad()
        for inputs, targets in window:
            loss = F.cross_entropy(model(inputs), targets, reduction="sum") / sum(len(t) for _, t in window)
            loss.backward()
        optimizer.step()


@right
def mixed_precision():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for _ in range(6):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()


@right
def mixed_precision_with_skipped_steps():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer)
    scaler = torch.amp.GradScaler("cpu", init_scale=3e38)
    for _ in range(8):
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(model(x) * 50, y)).backward()
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()


@right
def lbfgs():
    x, y = lines()
    model = nn.Linear(4, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5)

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        return loss

    for _ in range(4):
        optimizer.step(closure)


@right
def frozen_body():
    x, y = blobs()
    model = Dropping()
    for p in model.inner.parameters():
        p.requires_grad = False
    model.norm.requires_grad_(False)
    optimizer = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.1)
    model.train()
    model.norm.eval()
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@right
def thawed_layer_by_layer():
    x, y = blobs()
    model = mlp()
    model[0].requires_grad_(False)
    optimizer = torch.optim.Adam(model[2].parameters(), lr=0.01)
    for step in range(8):
        if step == 4:
            model[0].requires_grad_(True)
            optimizer.add_param_group({"params": model[0].parameters(), "lr": 0.001})
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@right
def compiled():
    x, y = blobs()
    model = mlp()
    fast = torch.compile(model, backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(fast(x), y).backward()
        optimizer.step()


@right
def logged_carefully():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses, total, norms = [], 0.0, []
    for _ in range(10):
        optimizer.zero_grad()
        out = model(x)
        loss = F.nll_loss(F.log_softmax(out, dim=1), y)
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), float("inf")))
        optimizer.step()
        losses.append(loss.detach())
        total += loss.item()
        out.detach().argmax(1).eq(y).float().mean()
