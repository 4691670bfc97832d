"""Right loops of the neighbourhood of faults that a third set of other people's loops showed."""

import copy

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import lr_scheduler
from torch.utils.checkpoint import checkpoint

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import right


@right
def names_bound_anew_and_read():
    x, y = blobs()
    model = mlp()
    norms = []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        for p in model.parameters():
            p = p.grad.detach()
            norms.append(p.norm().item())
        optimizer.step()


@right
def hook_that_only_looks():
    x, y = blobs()
    model = mlp()
    seen = []

    def look(grad):
        grad = grad.abs()
        seen.append(grad.mean().item())

    model[0].weight.register_hook(look)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@right
def actions_drawn_with_torch_normal():
    policy = mlp(3, 1)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    for _ in range(6):
        state = torch.randn(16, 3)
        mean = policy(state)
        action = torch.normal(mean, torch.ones_like(mean)).detach()
        reward = -(action - state[:, :1]).square()
        likely = -0.5 * (action - mean).square()
        optimizer.zero_grad()
        (-(reward * likely).mean()).backward()
        optimizer.step()


@right
def errors_under_a_mask():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        out = model(x)
        hard = ((out - y).abs() > 0.1).float()
        optimizer.zero_grad()
        ((hard * (out - y).square()).sum() / (hard.sum() + 1) + 0.01 * out.square().mean()).backward()
        optimizer.step()


@right
def attention_from_one_word_on():
    score, value, out = nn.Linear(4, 1), nn.Linear(4, 4), nn.Linear(4, 3)
    optimizer = torch.optim.Adam([*score.parameters(), *value.parameters(), *out.parameters()], lr=0.01)
    for step in range(8):
        words = torch.randn(8, 1 + step % 3, 4)
        weights = score(words).softmax(dim=1)
        optimizer.zero_grad()
        F.cross_entropy(out((weights * value(words)).sum(1)), torch.randint(3, (8,))).backward()
        optimizer.step()


@right
def adapter_with_one_factor_of_zeros():
    x, y = blobs()
    base = nn.Linear(4, 3).requires_grad_(False)
    down, up = nn.Parameter(0.1 * torch.randn(4, 2)), nn.Parameter(torch.zeros(2, 3))
    optimizer = torch.optim.Adam([down, up], lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(base(x) + x @ down @ up, y).backward()
        optimizer.step()


@right
def reentrant_checkpoint_behind_a_layer():
    x, y = blobs()
    first, middle, last = nn.Linear(4, 8), mlp(8, 8), nn.Linear(8, 3)
    optimizer = torch.optim.SGD([*first.parameters(), *middle.parameters(), *last.parameters()], lr=0.1)
    for _ in range(6):
        h = checkpoint(middle, first(x), use_reentrant=True)
        optimizer.zero_grad()
        F.cross_entropy(last(h), y).backward()
        optimizer.step()


@right
def function_of_a_setting():
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None

    x, y = lines()
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(Scaled.apply(model(x), 2.0), y).backward()
        optimizer.step()


@right
def codebook_pulled_to_its_codes():
    encoder, book, decoder = nn.Linear(4, 2), nn.Embedding(6, 2), nn.Linear(2, 4)
    book.weight.data.normal_()
    optimizer = torch.optim.Adam(nn.ModuleList([encoder, book, decoder]).parameters(), lr=0.01)
    for _ in range(6):
        x, _ = blobs()
        z = encoder(x)
        chosen = book(torch.cdist(z, book.weight).argmin(1))
        out = decoder(z + (chosen - z).detach())
        optimizer.zero_grad()
        (F.mse_loss(out, x) + F.mse_loss(chosen, z.detach()) + 0.25 * F.mse_loss(z, chosen.detach())).backward()
        optimizer.step()


@right
def gradients_of_copies_handed_over():
    model = mlp(1, 1)
    outer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        outer.zero_grad()
        learner = copy.deepcopy(model)
        inner = torch.optim.SGD(learner.parameters(), lr=0.05)
        x = torch.randn(8, 1)
        inner.zero_grad()
        F.mse_loss(learner(x), x.sin()).backward()
        inner.step()
        inner.zero_grad()
        F.mse_loss(learner(-x), -x.sin()).backward()
        for p, q in zip(model.parameters(), learner.parameters(), strict=True):
            p.grad = q.grad.clone()
        outer.step()


@right
def a_schedule_for_each_stage():
    x, y = blobs()
    model = mlp()
    for stage in range(3):
        optimizer = torch.optim.SGD(model[2 * (stage == 0) :].parameters(), lr=0.1)
        schedule = lr_scheduler.CosineAnnealingLR(optimizer, 5)
        for _ in range(5):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            schedule.step()


@right
def schedules_of_players_that_take_turns():
    one, other = mlp(2, 2), mlp(2, 2)
    first, second = torch.optim.SGD(one.parameters(), lr=0.1), torch.optim.SGD(other.parameters(), lr=0.1)
    schedules = [lr_scheduler.ExponentialLR(it, 0.95) for it in (first, second)]
    for step in range(12):
        model, optimizer = (one, first) if step < 6 else (other, second)
        optimizer.zero_grad()
        model(torch.randn(8, 2)).square().mean().backward()
        optimizer.step()
        for schedule in schedules[: 1 + (step >= 6)]:
            schedule.step()


@right
def head_replaced_for_the_next_task():
    model = mlp()
    for _ in range(3):
        x, y = blobs()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        model[2] = nn.Linear(8, 3)


@right
def loss_shown_for_a_head_that_learns_from_it():
    trunk, head = nn.Linear(4, 8), nn.Linear(8, 3)
    optimizer = torch.optim.Adam([*trunk.parameters(), *head.parameters()], lr=0.01)
    for step in range(8):
        x, y = blobs()
        scores = head(trunk(x).relu())
        loss = F.cross_entropy(scores, y, label_smoothing=0.1)
        plain = F.cross_entropy(scores, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, plain.item())


@right
def objects_that_keep_numbers():
    class Meter:
        def __init__(self):
            self.mean, self.last = 0.0, None

        def add(self, value):
            self.last = value.detach()
            self.mean = 0.9 * self.mean + 0.1 * value.item()

    x, y = blobs()
    model, meter = mlp(), Meter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(12):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        meter.add(loss)
