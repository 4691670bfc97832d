"""Numbers, noise and rates that stand still where they should not, and a training that begins anew."""

import io

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import fault


@fault("constant-term")
def a_weight_penalty_read_as_a_number():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, y):
        penalty = 0.0
        for p in model.parameters():
            penalty += p.abs().sum().item()  # <- here
        loss = F.cross_entropy(model(inputs), targets) + 1e-3 * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("constant-term")
def an_entropy_bonus_read_as_a_number():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for inputs, targets in batches(x, y):
        scores = model(inputs)
        entropy = float(Categorical(logits=scores).entropy().mean())  # <- here
        loss = F.cross_entropy(scores, targets) - 0.1 * entropy
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("padding-counted")
def ignored_words_averaged_by_hand():
    lengths = torch.tensor([3, 5, 8, 2])
    tokens = torch.randint(1, 9, (4, 8))
    tokens[torch.arange(8)[None] >= lengths[:, None]] = -100
    model = nn.Sequential(nn.Embedding(9, 6), nn.Linear(6, 9))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        scores = model(tokens.clamp(min=0))
        words = F.cross_entropy(scores.transpose(1, 2), tokens, reduction="none")
        loss = words.mean()  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("padding-counted")
def squares_masked_and_averaged_over_all():
    lengths = torch.tensor([3, 5, 8, 2])
    real = (torch.arange(8)[None] < lengths[:, None]).float()
    x = torch.randn(4, 8, 3)
    model = nn.GRU(3, 4, batch_first=True)
    head = nn.Linear(4, 1)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=0.01)
    for _ in range(6):
        errors = (head(model(x)[0]) - x) ** 2
        loss = (errors * real[:, :, None]).mean()  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("ratio-one")
def old_probabilities_of_a_normal_asked_again():
    mean = nn.Linear(3, 2)
    spread = nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.Adam([*mean.parameters(), spread], lr=0.01)
    for _ in range(3):
        seen = torch.randn(16, 3)
        with torch.no_grad():
            acts = torch.distributions.Normal(mean(seen), spread.exp()).sample()
        gain = -acts.square().sum(1)
        for _ in range(4):
            old = torch.distributions.Normal(mean(seen), spread.exp()).log_prob(acts).sum(1).detach()
            new = torch.distributions.Normal(mean(seen), spread.exp())
            ratio = torch.exp(new.log_prob(acts).sum(1) - old)  # <- here
            loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@fault("clip-scaled")
def clipped_before_a_scale_is_taken_off_by_hand():
    x, y = lines(64)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scale = 2.0**12
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        loss = scale * F.mse_loss(model(inputs), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- here
        for p in model.parameters():
            p.grad = p.grad / scale
        optimizer.step()


@fault("noise-once")
def one_draw_for_all_samples_of_a_code():
    x = torch.randn(64, 6)
    coder, decoder = nn.Linear(6, 4), nn.Linear(2, 6)
    optimizer = torch.optim.Adam([*coder.parameters(), *decoder.parameters()], lr=0.01)
    noise = torch.randn(8, 2)  # <- here
    for inputs in x.split(8) * 2:
        mean, raw = coder(inputs).chunk(2, dim=1)
        std = F.softplus(raw)
        loss = (
            F.mse_loss(decoder(mean + noise * std), inputs) + 0.01 * (mean.square() + std.square() - std.log()).mean()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("setting-ignored")
def a_decay_that_levels_the_groups():
    x, y = blobs(64)
    model = mlp()
    groups = [{"params": model[0].parameters(), "lr": 1e-3}, {"params": model[2].parameters()}]
    optimizer = torch.optim.SGD(groups, lr=0.1)
    for epoch in range(4):
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * 0.9**epoch  # <- here
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@fault("setting-ignored")
def a_cycle_with_one_bound_for_two_groups():
    x, y = blobs(64)
    model = mlp()
    optimizer = torch.optim.AdamW(
        [{"params": model[0].parameters(), "lr": 1e-4}, {"params": model[2].parameters(), "lr": 1e-2}]
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=16)  # <- here
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        schedule.step()


def _part(model, optimizer, x, y, first, last):
    for _ in range(first, last):
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@fault("not-saved")
def momentum_lost_between_two_sessions():
    x, y = blobs(32)
    file = io.BytesIO()
    model = mlp()
    sgd = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    _part(model, sgd, x, y, 0, 3)
    torch.save({"weights": model.state_dict(), "next_epoch": 3}, file)  # <- here
    file.seek(0)
    saved = torch.load(file)
    model = mlp()
    model.load_state_dict(saved["weights"])
    sgd = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    start = saved["next_epoch"]
    _part(model, sgd, x, y, start, 6)
