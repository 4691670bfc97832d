"""Faults of kinds that other people's loops showed."""

import copy
from itertools import chain

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import fault


@fault("pass-in-validation")
def validation_with_a_backward():
    x, y = blobs(24)
    model, criterion = mlp(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        model.train()
        for inputs, targets in batches(x, y):
            criterion(model(inputs), targets).backward()
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        criterion(model(x), y).backward()  # <- here


@fault("graph-in-validation")
def validation_losses_in_a_list():
    x, y = blobs(24)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model.train()
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        model.eval()
        found = []
        for inputs, targets in batches(x, y, 12):
            found.append(F.cross_entropy(model(inputs), targets))  # <- here
        print(torch.stack(found).mean().item())


@fault("carried-state")
def state_carried_through_one_step():
    cell, head = nn.RNNCell(4, 8), nn.Linear(8, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
    for _ in range(3):
        state = torch.zeros(16, 8)
        optimizer.zero_grad()
        for _ in range(6):
            x, y = lines()
            state = cell(x, state)  # <- here
            (F.mse_loss(head(state), y) / 6).backward(retain_graph=True)
        optimizer.step()


@fault("constant-term")
def penalty_under_numpy():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(6):
        out = model(x)
        size = torch.tensor(out.detach().numpy()).abs().mean()  # <- here
        optimizer.zero_grad()
        (F.mse_loss(out, y) + 0.1 * size).backward()
        optimizer.step()


@fault("constant-term")
def gradient_penalty_cut():
    critic = mlp(2, 1)
    optimizer = torch.optim.Adam(critic.parameters(), lr=0.01)
    for _ in range(6):
        real, fake = torch.randn(8, 2) + 1, torch.randn(8, 2)
        between = (0.5 * real + 0.5 * fake).requires_grad_()
        slope = torch.autograd.grad(critic(between).sum(), between, create_graph=True)[0]
        penalty = (slope.data.norm(dim=1) - 1).pow(2).mean()  # <- here
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("wrong-loss")
def advantage_with_a_graph():
    policy, baseline = mlp(4, 2), mlp(4, 1)
    optimizer = torch.optim.Adam(chain(policy.parameters(), baseline.parameters()), lr=0.01)
    for _ in range(6):
        x = torch.randn(16, 4)
        dist = torch.distributions.Categorical(logits=policy(x))
        action = dist.sample()
        adv = (action == 0).float() - baseline(x).squeeze(1)
        loss = -(dist.log_prob(action) * adv).mean() + adv.pow(2).mean()  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("wrong-loss")
def old_policy_with_a_graph():
    policy = mlp(4, 3)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.01)
    for _ in range(6):
        x = torch.randn(16, 4)
        old = torch.distributions.Categorical(logits=policy(x))
        action = old.sample()
        log_prob_old = old.log_prob(action)  # <- here
        new = torch.distributions.Categorical(logits=policy(x)).log_prob(action)
        loss = -(torch.exp(new - log_prob_old) * (action == 0).float()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("wrong-loss")
def teacher_among_the_parameters():
    x, _ = blobs()
    teacher, student = mlp(hidden=16), mlp()
    optimizer = torch.optim.Adam(chain(student.parameters(), teacher.parameters()), lr=0.01)  # <- here
    for _ in range(6):
        loss = F.kl_div(student(x).log_softmax(1), teacher(x).softmax(1), reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("wrong-loss")
def one_optimizer_for_actor_and_critic():
    actor, critic = mlp(3, 1), mlp(4, 1)
    optimizer = torch.optim.Adam(chain(actor.parameters(), critic.parameters()), lr=1e-3)  # <- here
    for _ in range(6):
        s, a = torch.randn(16, 3), torch.rand(16, 1)
        critic_loss = F.mse_loss(critic(torch.cat([s, a], 1)), -a)
        actor_loss = critic(torch.cat([s, actor(s)], 1)).mean()
        optimizer.zero_grad()
        (critic_loss - actor_loss).backward()
        optimizer.step()


@fault("never-reached")
def inner_weights_start_anew():
    model = mlp(1, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        x = torch.rand(8, 1)
        fast = dict(model.named_parameters())
        slopes = torch.autograd.grad(F.mse_loss(functional_call(model, fast, (x,)), x.sin()), list(fast.values()))
        pairs = zip(fast.items(), slopes, strict=True)
        fast = {name: (w - 0.1 * g).detach().requires_grad_() for (name, w), g in pairs}  # <- here
        optimizer.zero_grad()
        F.mse_loss(functional_call(model, fast, (x,)), x.sin()).backward()
        optimizer.step()


@fault("no-zero-grad")
def sharpness_aware_without_clearing():
    rho = 0.05
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        moves = [rho * p.grad / (p.grad.norm() + 1e-8) for p in model.parameters()]
        with torch.no_grad():
            for p, move in zip(model.parameters(), moves, strict=True):
                p.add_(move)
        F.cross_entropy(model(x), y).backward()  # <- here
        with torch.no_grad():
            for p, move in zip(model.parameters(), moves, strict=True):
                p.sub_(move)
        optimizer.step()


@fault("not-in-optimizer")
def offset_that_is_no_parameter():
    class Shifted(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 3)
            self.shift = torch.zeros(3, requires_grad=True)  # <- here

        def forward(self, x):
            return self.inner(x) + self.shift

    x, y = blobs()
    model = Shifted()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("other-tensors")
def tensor_bound_anew():
    x, y = lines(width=1)
    w = torch.zeros(1, 1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    w = torch.ones(1, 1).requires_grad_()  # <- here
    for _ in range(6):
        optimizer.zero_grad()
        (x @ w - y).pow(2).mean().backward()
        optimizer.step()


@fault("not-in-optimizer")
def weight_replaced_after_the_optimizer():
    x, y = blobs()
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.weight = nn.Parameter(torch.zeros(3, 4))  # <- here
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        model.zero_grad()


@fault("zero-gradient")
def a_backward_of_zeros():
    class Rounded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, levels):
            return (x * levels).round() / levels

        @staticmethod
        def backward(ctx, grad):
            return torch.zeros_like(grad), None  # <- here

    x, y = blobs()
    body, head = nn.Linear(4, 8), nn.Linear(8, 3)
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
    for _ in range(6):
        loss = F.cross_entropy(head(Rounded.apply(body(x).tanh(), 4)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("frozen-moves")
def frozen_by_zeros_under_decay():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        model[0].weight.grad.zero_()  # <- here
        optimizer.step()


@fault("frozen-moves")
def frozen_by_zeros_under_momentum():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(9):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        if step > 3:
            model[0].weight.grad.zero_()  # <- here
        optimizer.step()


@fault("log-missing")
def likelihood_without_a_logarithm():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        chances = model(x).softmax(dim=-1)
        nll = -chances[torch.arange(len(y)), y].mean()  # <- here
        optimizer.zero_grad()
        nll.backward()
        optimizer.step()


@fault("copy-is-itself")
def average_of_itself():
    x, y = lines()
    model = mlp(out=1)
    shadow = model  # <- here
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for mean, p in zip(shadow.parameters(), model.parameters(), strict=False):
                mean.mul_(0.9).add_(p, alpha=0.1)


@fault("constant-term")
def decay_term_under_no_grad():
    def size(model):
        with torch.no_grad():  # <- here
            return sum(p.pow(2).sum() for p in model.parameters())

    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(6):
        loss = F.mse_loss(model(x), y) + 0.01 * size(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("state-is-alias")
def best_state_that_moves_along():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    best, lowest = {}, float("inf")
    for _ in range(6):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        if loss.item() < lowest:
            lowest = loss.item()
            best = {"epoch": 0, "model": model.state_dict()}  # <- here
        optimizer.step()
    model.load_state_dict(best["model"])


@fault("state-is-alias")
def weights_swapped_away():
    x, y = lines()
    model = mlp(out=1)
    mean = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(mean.parameters(), model.parameters(), strict=True):
                old.lerp_(new, 0.1)
    own = dict(model.state_dict())  # <- here
    model.load_state_dict(mean.state_dict())
    model.load_state_dict(own)


@fault("nothing-loaded")
def resumed_from_nothing():
    x, y = lines()
    state = nn.DataParallel(mlp(out=1)).state_dict()
    model = mlp(out=1)
    model.load_state_dict(state, strict=False)  # <- here
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


@fault("nothing-loaded")
def only_the_head_was_loaded():
    x, y = blobs()
    old = nn.ModuleDict({"body": mlp(out=8), "head": nn.Linear(8, 3)})
    state = {name.replace("body.", "encoder.body."): value for name, value in old.state_dict().items()}
    model = nn.ModuleDict({"body": mlp(out=8), "head": nn.Linear(8, 3)})
    model.load_state_dict(state, strict=False)  # <- here
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model["head"](model["body"](x)), y).backward()
        optimizer.step()


@fault("update-lost")
def bfloat16_at_a_small_rate():
    x, y = blobs(32)
    model = mlp(hidden=64).to(torch.bfloat16)  # <- here
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    for _ in range(8):
        optimizer.zero_grad()
        F.cross_entropy(model(x.bfloat16()).float(), y).backward()
        optimizer.step()


@fault("ignores-incoming")
def function_without_the_chain_rule():
    class Squared(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return 2 * x  # <- here

    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(Squared.apply(model(x)), y).backward()
        optimizer.step()


@fault("sample-cut")
def latent_without_a_way_back():
    x, _ = blobs()
    encoder, decoder = nn.Linear(4, 4), nn.Linear(2, 4)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01)
    for _ in range(6):
        mean, log_scale = encoder(x).chunk(2, dim=-1)
        latent = torch.distributions.Normal(mean, log_scale.exp())
        z = latent.sample()  # <- here
        prior = torch.distributions.Normal(torch.zeros(2), torch.ones(2))
        loss = F.mse_loss(decoder(z * 1.0), x) + torch.distributions.kl_divergence(latent, prior).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("broadcast-loss")
def each_step_credited_with_every_return():
    policy = mlp(out=2)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    for _ in range(5):
        chosen, rewards = [], []
        for _ in range(7):
            choice = torch.distributions.Categorical(logits=policy(torch.randn(1, 4)))
            action = choice.sample()
            chosen.append(choice.log_prob(action))
            rewards.append(float(action) - 0.3)
        returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
        objective = -(torch.stack(chosen) * returns).sum()  # <- here
        optimizer.zero_grad()
        objective.backward()
        optimizer.step()


@fault("broadcast-loss")
def margin_of_a_column_and_a_row():
    x, _ = blobs()
    y = (x[:, 0] > 0.4).float() * 2 - 1
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        margin = y * model(x)  # <- here
        loss = (1 - margin).clamp(min=0).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("zero-before-step")
def only_the_last_part_counts():
    x, y = blobs(48)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for at, (inputs, targets) in enumerate(batches(x, y)):
        model.zero_grad()  # <- here
        (F.cross_entropy(model(inputs), targets) / 3).backward()
        if at % 3 == 2:
            optimizer.step()
