"""Right loops that look like the faults which other people's loops showed."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import right


def train(model, x, y, steps=6):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


@right
def best_state_copied():
    x, y = lines()
    model = mlp(out=1)
    best = copy.deepcopy(model.state_dict())
    by_hand = {name: value.clone() for name, value in model.state_dict().items()}
    train(model, x, y)
    model.load_state_dict(best)
    model.load_state_dict(by_hand)


@right
def state_loaded_where_it_came_from_at_once():
    x, y = lines()
    model = mlp(out=1)
    train(model, x, y, 3)
    model.load_state_dict(model.state_dict())
    state = model.state_dict()
    for value in state.values():
        value.mul_(0.5)
    model.load_state_dict(state)
    train(model, x, y, 3)


@right
def state_filled_up_with_what_fits():
    x, y = lines()
    pretrained = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 5)).state_dict()
    model = mlp(out=1)
    own = model.state_dict()
    train(model, x, y, 3)
    own.update({name: value for name, value in pretrained.items() if own[name].shape == value.shape})
    model.load_state_dict(own)
    train(model, x, y, 3)


@right
def teacher_that_stays():
    x, y = lines()
    teacher, model = mlp(out=1), mlp(out=1)
    state = teacher.state_dict()
    train(model, x, y)
    teacher.load_state_dict(state)
    with torch.no_grad():
        F.mse_loss(model(x), teacher(x))


@right
def target_that_follows():
    x, y = lines()
    online, target = mlp(out=1), mlp(out=1).requires_grad_(False)
    optimizer = torch.optim.SGD(online.parameters(), lr=0.05)
    state = online.state_dict()
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(online(x), y + 0.1 * target(x)).backward()
        optimizer.step()
        target.load_state_dict(state)


@right
def backbone_under_a_new_head():
    x, y = lines()
    old = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)).state_dict()
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh())
    model.add_module("head", nn.Linear(8, 1))
    model.load_state_dict(old, strict=False)
    train(model, x, y)


@right
def adapters_only():
    x, y = lines()
    model = nn.ModuleDict({"body": mlp(out=8), "adapter": nn.Linear(8, 1)})
    model.load_state_dict({"adapter.weight": torch.zeros(1, 8), "adapter.bias": torch.zeros(1)}, strict=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model["adapter"](model["body"](x)), y).backward()
        optimizer.step()


@right
def second_try_without_the_prefix():
    x, y = blobs()
    state = nn.DataParallel(mlp()).state_dict()
    model = mlp()
    if model.load_state_dict(state, strict=False).unexpected_keys:
        model.load_state_dict({name.removeprefix("module."): value for name, value in state.items()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@right
def exact_values_beside_the_rounded_ones():
    x, y = blobs(32)
    model = mlp(hidden=64).to(torch.bfloat16)
    exact = [p.detach().float().requires_grad_() for p in model.parameters()]
    optimizer = torch.optim.SGD(exact, lr=1e-5)
    for _ in range(8):
        model.zero_grad()
        F.cross_entropy(model(x.bfloat16()).float(), y).backward()
        for own, p in zip(exact, model.parameters(), strict=True):
            own.grad = p.grad.float()
        optimizer.step()
        with torch.no_grad():
            for own, p in zip(exact, model.parameters(), strict=True):
                p.copy_(own)


@right
def bfloat16_after_a_warm_up():
    x, y = blobs(32)
    model = mlp(hidden=64).to(torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.0 if step < 6 else min(1.0, step / 12))
    for _ in range(14):
        optimizer.zero_grad()
        F.cross_entropy(model(x.bfloat16()).float(), y).backward()
        optimizer.step()
        schedule.step()


@right
def bfloat16_where_few_rows_are_met():
    model = nn.Sequential(nn.Embedding(1000, 8), nn.Linear(8, 3)).to(torch.bfloat16)
    model[1].requires_grad_(False)
    optimizer = torch.optim.Adam(model[0].parameters(), lr=0.05)
    for step in range(8):
        optimizer.zero_grad()
        F.cross_entropy(model(torch.arange(4) + step).float(), torch.arange(4) % 3).backward()
        optimizer.step()


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *grads):
        return sum(3 * x**2 * grad for x, grad in zip(ctx.saved_tensors, grads, strict=True))


class HalfSquare(torch.autograd.Function):
    """Its value is the loss itself, so that 1 comes in."""

    @staticmethod
    def forward(ctx, out, y):
        ctx.save_for_backward(out - y)
        return 0.5 * (out - y).pow(2).sum()

    @staticmethod
    def backward(ctx, grad_output):
        (error,) = ctx.saved_tensors
        return error, None


@right
def functions_with_the_chain_rule_or_at_the_root():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in range(6):
        optimizer.zero_grad()
        HalfSquare.apply(Cube.apply(model(x)), y).backward()
        optimizer.step()


def drawing(draw):
    """Train an encoder by its divergence from a prior, and a decoder from what `draw` gives."""
    x, _ = blobs()
    encoder, decoder = nn.Linear(4, 4), nn.Linear(2, 4)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01)
    for _ in range(6):
        mean, log_scale = encoder(x).chunk(2, dim=-1)
        latent = torch.distributions.Normal(mean, log_scale.exp())
        prior = torch.distributions.Normal(torch.zeros(2), torch.ones(2))
        loss = F.mse_loss(decoder(draw(latent)), x) + torch.distributions.kl_divergence(latent, prior).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def latent_with_a_way_back():
    def draw(latent):
        print(latent.sample().mean().item())
        return latent.rsample()

    drawing(draw)


@right
def latent_cut_on_purpose():
    drawing(lambda latent: latent.sample().detach())


@right
def gaussian_policy():
    x, _ = blobs()
    policy, critic = nn.Linear(4, 2), nn.Linear(6, 1)
    optimizer = torch.optim.Adam([*policy.parameters(), *critic.parameters()], lr=0.01)
    for _ in range(6):
        choice = torch.distributions.Normal(policy(x), 0.5)
        action = choice.sample()
        value = critic(torch.cat([x, action], 1)).squeeze(1)
        reward = -action.pow(2).sum(1)
        advantage = (reward - value).detach()
        loss = F.mse_loss(value, reward) - (choice.log_prob(action).sum(1) * advantage).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
