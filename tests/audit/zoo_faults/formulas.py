"""Derivatives that are none, learned weights that fall, factors that are rates, and a count turned round."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Bernoulli, Normal, kl_divergence

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import fault


@fault("derivative-differs")
def a_tanh_whose_derivative_takes_the_input():
    class TanhOfInput(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.tanh(x)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * (1 - x**2)  # <- here

    x, y = lines(96)
    first, last = nn.Linear(x.shape[1], 32), nn.Linear(32, 1)
    optimizer = torch.optim.Adam([*first.parameters(), *last.parameters()], lr=0.01)
    for _ in range(6):
        for inputs, targets in batches(x, y, 16):
            optimizer.zero_grad()
            hidden = TanhOfInput.apply(first(inputs))
            F.mse_loss(last(hidden), targets).backward()
            optimizer.step()


@fault("derivative-differs")
def a_swish_without_the_second_term():
    class HalfSwish(torch.autograd.Function):
        @staticmethod
        def forward(x, slope):
            return x * torch.sigmoid(slope * x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.slope = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            gate = torch.sigmoid(ctx.slope * x)
            return grad * gate, None  # <- here

    x, y = blobs(96)
    first, last = nn.Linear(4, 32), nn.Linear(32, 3)
    optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=0.1)
    for _ in range(6):
        for inputs, targets in batches(x, y, 16):
            optimizer.zero_grad()
            scores = last(HalfSwish.apply(first(inputs), 1.5))
            F.cross_entropy(scores, targets).backward()
            optimizer.step()


@fault("weight-escapes")
def tasks_that_are_weighed_without_a_term_for_the_weights():
    x, y = blobs(32)
    model, log_vars = mlp(), nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.Adam([*model.parameters(), log_vars], lr=0.01)
    for _ in range(4):
        for inputs, targets in batches(x, y):
            scores = model(inputs)
            tasks = torch.stack([F.cross_entropy(scores, targets), scores.pow(2).mean()])
            loss = (torch.exp(-log_vars) * tasks).sum()  # <- here
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@fault("weight-escapes")
def a_learned_spread_that_divides_and_is_not_held():
    x, y = lines(32)
    model, log_sigma = nn.Linear(x.shape[1], 1), torch.zeros((), requires_grad=True)
    optimizer = torch.optim.Adam([{"params": model.parameters()}, {"params": [log_sigma]}], lr=0.02)
    for _ in range(4):
        for inputs, targets in batches(x, y):
            error = F.mse_loss(model(inputs), targets)
            loss = error / (2 * log_sigma.exp() ** 2)  # <- here
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@fault("rate-far-off")
def a_schedule_that_returns_the_rate_itself():
    x, y = blobs(32)
    model = mlp()
    peak, steps = 3e-3, 24
    optimizer = torch.optim.AdamW(model.parameters(), lr=peak)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: peak * 0.5 * (1 + math.cos(math.pi * step / steps)),  # <- here
    )
    for _ in range(6):
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            schedule.step()


@fault("leftover-window")
def a_step_in_all_rounds_but_the_fourth():
    x, y = blobs(64)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    optimizer.zero_grad()
    for _ in range(3):
        for i, (inputs, targets) in enumerate(batches(x, y)):
            (F.cross_entropy(model(inputs), targets) / 4).backward()
            if (i + 1) % 4:  # <- here
                optimizer.step()
                optimizer.zero_grad()


@fault("view-not-transpose")
def scores_by_step_and_targets_by_sample():
    tokens = torch.randint(7, (6, 10))
    table, recurrent, out = nn.Embedding(7, 8), nn.GRU(8, 8), nn.Linear(8, 7)
    parts = nn.ModuleList([table, recurrent, out])
    optimizer = torch.optim.Adam(parts.parameters(), lr=0.01)
    for _ in range(6):
        given, target = tokens[:, :-1], tokens[:, 1:]
        states, _ = recurrent(table(given.t()))
        loss = F.cross_entropy(out(states).reshape(-1, 7), target.reshape(-1))  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("clip-after-step")
def an_optimizer_that_clips_after_its_own_step():
    class Limited(torch.optim.SGD):
        def step(self, closure=None):
            out = super().step(closure)
            nn.utils.clip_grad_norm_([p for group in self.param_groups for p in group["params"]], 0.5)  # <- here
            return out

    x, y = blobs(32)
    model = mlp()
    optimizer = Limited(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


@fault("zero-before-step")
def parts_that_are_cleared_before_the_step_behind_their_loop():
    x, y = blobs(64)
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    parts = batches(x, y)
    for update in range(4):
        for inputs, targets in parts[4 * update : 4 * update + 4]:
            model.zero_grad()  # <- here
            loss = F.cross_entropy(model(inputs), targets) / 4
            loss.backward()
        optimizer.step()


@fault("schedule-too-fast")
def milestones_of_epochs_behind_a_warm_up():
    x, y = blobs(48)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.SequentialLR(
        optimizer,
        [
            torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=1),
            torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4], gamma=0.1),
        ],
        milestones=[1],
    )
    for _ in range(6):
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            schedule.step()  # <- here


@fault("sample-cut")
def a_sample_whose_decoder_gives_a_density():
    x = torch.rand(32, 4).round()
    encoder, decoder = nn.Linear(4, 4), nn.Linear(2, 4)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01)
    prior = Normal(torch.zeros(2), torch.ones(2))
    for _ in range(8):
        mean, spread = encoder(x).chunk(2, dim=1)
        code = Normal(mean, F.softplus(spread))
        drawn = code.sample()  # <- here
        missed = -Bernoulli(logits=decoder(drawn)).log_prob(x).sum(1).mean()
        loss = missed + kl_divergence(code, prior).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
