"""Numbers, noise and rates that stand still, and may, and a training that begins anew."""

import io

import torch
import torch.nn.functional as F
from torch import nn

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import right


@right
def a_penalty_that_is_shown_as_a_number():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, y):
        penalty = sum(p.abs().sum() for p in model.parameters())
        fit = F.cross_entropy(model(inputs), targets)
        loss = fit + 1e-3 * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(fit.item() + 1e-3 * penalty.item())


@right
def a_loss_held_above_a_level_and_less_what_it_was():
    x, y = blobs(64)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, y):
        loss = F.cross_entropy(model(inputs), targets)
        loss = (loss - 0.3).abs() + 0.3
        loss = loss - loss.item() + 1.0
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def masked_means_put_right():
    lengths = torch.tensor([3, 5, 8, 2])
    real = (torch.arange(8)[None] < lengths[:, None]).float()
    x = torch.randn(4, 8, 3)
    model, head = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 1)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=0.01)
    for step in range(9):
        errors = (head(model(x)[0]).squeeze(-1) - x.sum(-1)) ** 2
        if step % 3 == 0:
            loss = (errors * real).mean() / real.mean()
        elif step % 3 == 1:
            loss = (errors * real).mean() * (real.numel() / real.sum())
        else:
            loss = (errors * real).sum() / real.sum()
        print((errors * real).mean().item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def weights_of_samples_that_are_not_padding():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    below = torch.ones(4, 4).tril()
    for inputs, targets in batches(x, y):
        kept = (torch.rand(4, 3) > 0.5).float()
        scores = model(inputs)
        near = scores @ scores.T
        loss = F.cross_entropy(scores, targets) + 0.01 * (near * below).mean() + 0.01 * (scores * kept).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def scaled_by_hand_and_clipped_after():
    x, y = lines(64)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        (256.0 * F.mse_loss(model(inputs), targets)).backward()
        for p in model.parameters():
            p.grad /= 256.0
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


@right
def a_code_with_new_noise_in_each_step():
    x = torch.randn(64, 6)
    coder, decoder = nn.Linear(6, 4), nn.Linear(2, 6)
    optimizer = torch.optim.Adam([*coder.parameters(), *decoder.parameters()], lr=0.01)
    eps = torch.empty(8, 2)
    shown = torch.randn(8, 2)
    for inputs in x.split(8) * 2:
        mean, raw = coder(inputs).chunk(2, dim=1)
        std = F.softplus(raw)
        eps.normal_()
        loss = F.mse_loss(decoder(mean + eps * std), inputs) + 0.01 * (mean.square() + std.square() - std.log()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(decoder(shown).mean())


@right
def a_draw_in_each_step_where_the_last_one_was():
    x = torch.randn(64, 6)
    coder, decoder = nn.Linear(6, 4), nn.Linear(2, 6)
    optimizer = torch.optim.Adam([*coder.parameters(), *decoder.parameters()], lr=0.01)
    eps = None
    for inputs in x.split(8) * 2:
        mean, raw = coder(inputs).chunk(2, dim=1)
        del eps
        eps = torch.randn(8, 2)
        loss = (
            F.mse_loss(decoder(mean + eps * (0.5 * raw).exp()), inputs)
            + 0.01 * (mean.square() + raw.exp() - raw).mean()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def a_rate_of_its_own_for_each_group():
    x, y = blobs(64)
    model = mlp()
    groups = [{"params": model[0].parameters(), "lr": 1e-3}, {"params": model[2].parameters(), "lr": 1e-2}]
    optimizer = torch.optim.SGD(groups)
    for group in optimizer.param_groups:
        group["initial_lr"] = group["lr"]
    for epoch in range(4):
        for group in optimizer.param_groups:
            rate = group["initial_lr"] * 0.9**epoch
            group["lr"] = rate
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@right
def one_rate_for_all_in_a_second_phase():
    x, y = blobs(64)
    model = mlp()
    groups = [{"params": model[0].parameters(), "lr": 1e-3}, {"params": model[2].parameters(), "lr": 1e-2}]
    optimizer = torch.optim.SGD(groups)
    for phase in range(2):
        if phase == 1:
            for group in optimizer.param_groups:
                group["lr"] = 1e-3
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@right
def the_best_weights_trained_further_on_other_data():
    x, y = blobs(32)
    file = io.BytesIO()
    model = mlp()
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        for inputs, targets in batches(x, y, 8):
            adam.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            adam.step()
    torch.save({"model": model.state_dict(), "epoch": 3}, file)
    file.seek(0)
    best = torch.load(file)
    print(f"from epoch {best['epoch']}", best["epoch"])
    tuned = mlp()
    tuned.load_state_dict(best["model"])
    adam = torch.optim.Adam(tuned.parameters(), lr=0.001)
    for inputs, targets in batches(*blobs(32), 8):
        adam.zero_grad()
        F.cross_entropy(tuned(inputs), targets).backward()
        adam.step()
