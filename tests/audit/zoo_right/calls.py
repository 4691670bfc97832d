"""Right loops that call PyTorch as the faulty ones of the same name do, and mean it."""

import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Subset, SubsetRandomSampler, TensorDataset, WeightedRandomSampler

from tests.audit.parts import Dropping, batches, blobs, lines, mlp
from tests.audit.registry import right


@right
def clipped_for_each_sample_and_then_added():
    x, y = blobs(16)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, y):
        total = [torch.zeros_like(p) for p in model.parameters()]
        for one, target in zip(inputs.split(1), targets.split(1), strict=True):
            model.zero_grad()
            F.cross_entropy(model(one), target).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for kept, p in zip(total, model.parameters(), strict=True):
                kept += p.grad
        for kept, p in zip(total, model.parameters(), strict=True):
            p.grad = (kept + 0.01 * torch.randn_like(kept)) / 4
        optimizer.step()


@right
def two_norms_one_only_read():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    norms = []
    for at, (inputs, targets) in enumerate(batches(x, y)):
        (F.cross_entropy(model(inputs), targets) / 2).backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), float("inf")).item())
        if at % 2:
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad()


@right
def gradients_masked_after_each_micro_batch():
    x, y = blobs(32)
    model = mlp()
    masks = [(torch.rand_like(p) > 0.3).float() for p in model.parameters()]
    with torch.no_grad():
        for p, mask in zip(model.parameters(), masks, strict=True):
            p.mul_(mask)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for at, (inputs, targets) in enumerate(batches(x, y)):
        (F.cross_entropy(model(inputs), targets) / 2).backward()
        for p, mask in zip(model.parameters(), masks, strict=True):
            p.grad.mul_(mask)
        if at % 2:
            optimizer.step()
            optimizer.zero_grad()


@right
def a_weight_for_each_row():
    x, y = blobs(40)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    weights = (1.0 / torch.bincount(y, minlength=3).clamp(min=1))[y]
    picks = WeightedRandomSampler(weights, 24)
    for _ in range(3):
        for inputs, targets in DataLoader(TensorDataset(x, y), batch_size=8, sampler=picks):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@right
def rare_rows_named_many_times():
    x, y = blobs(40)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(x, y)
    rare = torch.nonzero(y == 0).flatten().tolist() or [0]
    rows = (rare * 40)[:20] + list(range(20))
    held_out = Subset(data, range(30, 40))
    for _ in range(3):
        for inputs, targets in DataLoader(data, batch_size=8, sampler=SubsetRandomSampler(rows)):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        with torch.no_grad():
            sum(F.cross_entropy(model(inputs), targets) for inputs, targets in DataLoader(held_out, batch_size=5))


@right
def classes_drawn_by_their_weights():
    x, y = blobs(60)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows_of = [torch.nonzero(y == label).flatten() for label in range(3)]
    weights = torch.tensor([0.5, 0.25, 0.25])
    for _ in range(8):
        drawn = torch.multinomial(weights, 12, replacement=True).tolist()
        rows = torch.stack([rows_of[label][torch.randint(len(rows_of[label]), ())] for label in drawn])
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()


@right
def the_same_seed_for_each_setting():
    x, y = blobs(32)
    for rate in (0.3, 0.1, 0.03, 0.01):
        torch.manual_seed(0)
        random.seed(0)
        model = Dropping()
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@right
def another_seed_in_each_epoch():
    x, y = blobs(32)
    model = Dropping()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        torch.manual_seed(100 + epoch)
        for inputs, targets in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@right
def the_same_noise_for_each_evaluation():
    x, y = lines(24)
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    measured = []

    @torch.no_grad()
    def robustness():
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return F.mse_loss(model(x + 0.1 * torch.randn_like(x)), y).item()

    for _ in range(5):
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            F.mse_loss(model(inputs + 0.01 * torch.randn_like(inputs)), targets).backward()
            optimizer.step()
        measured.append(robustness())


@right
def a_generator_of_its_own_set_back_for_each_preview():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        torch.manual_seed(1)
        preview = torch.randn(4, 4)
        with torch.no_grad():
            model(preview)
        generator = torch.Generator().manual_seed(2)
        torch.randn(3, generator=generator)
