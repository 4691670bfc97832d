"""Right loops that take derivatives by inputs: with their graph, or for what needs none."""

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import right


@right
def decay_equation():
    model = mlp(1, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        t = torch.rand(12, 1, requires_grad=True)
        u = model(t)
        slope = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
        optimizer.zero_grad()
        ((slope + 3 * u).square().mean() + (model(torch.zeros(1, 1)) - 1).square().sum()).backward()
        optimizer.step()


@right
def adversary_by_the_sign_of_a_derivative():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        near = x.clone().requires_grad_()
        slope = torch.autograd.grad(F.cross_entropy(model(near), y), near)[0]
        moved = near.detach() + 0.1 * slope / slope.norm(dim=1, keepdim=True)
        optimizer.zero_grad()
        F.cross_entropy(model(moved), y).backward()
        optimizer.step()


@right
def virtual_adversary_with_the_direction_left_attached():
    x, _ = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        logits = model(x)
        noise = (1e-2 * torch.randn_like(x)).requires_grad_()
        gap = F.kl_div(model(x + noise).log_softmax(1), logits.softmax(1).detach(), reduction="batchmean")
        direction = torch.autograd.grad(gap, noise)[0]
        moved = model(x + 0.1 * direction)
        loss = F.kl_div(moved.log_softmax(1), logits.softmax(1).detach(), reduction="batchmean")
        optimizer.zero_grad()
        (loss + logits.square().mean()).backward()
        optimizer.step()


@right
def energy_model_with_a_sampler():
    energy = nn.Sequential(nn.Linear(2, 16), nn.SiLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(energy.parameters(), lr=0.01)
    for _ in range(6):
        sample = torch.randn(16, 2)
        for _ in range(3):
            sample.requires_grad_()
            slope = torch.autograd.grad(energy(sample).sum(), sample)[0]
            sample = (sample - 0.1 * slope + 0.05 * torch.randn_like(sample)).detach()
        optimizer.zero_grad()
        (energy(torch.randn(16, 2) + 2).mean() - energy(sample).mean()).backward()
        optimizer.step()


@right
def actor_along_the_critics_derivative():
    actor, critic = mlp(3, 2), mlp(5, 1)
    plays = torch.optim.Adam(actor.parameters(), lr=0.01)
    judges = torch.optim.Adam(critic.parameters(), lr=0.01)
    for _ in range(6):
        state, reward = torch.randn(16, 3), torch.randn(16, 1)
        action = actor(state)
        judges.zero_grad()
        F.mse_loss(critic(torch.cat([state, action.detach()], 1)), reward).backward()
        judges.step()
        tried = action.detach().requires_grad_()
        slope = torch.autograd.grad(critic(torch.cat([state, tried], 1)).sum(), tried)[0]
        plays.zero_grad()
        (-(slope * action).sum(1).mean()).backward()
        plays.step()


@right
def samples_weighted_by_their_derivative():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        near = x.clone().requires_grad_()
        losses = F.cross_entropy(model(near), y, reduction="none")
        slope = torch.autograd.grad(losses.sum(), near, retain_graph=True)[0]
        weight = slope.norm(dim=1).softmax(0).detach()
        optimizer.zero_grad()
        (weight * losses).sum().backward()
        optimizer.step()


@right
def saliency_for_a_log():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = []
    for _ in range(6):
        near = x.clone().requires_grad_()
        loss = F.cross_entropy(model(near), y)
        slope = torch.autograd.grad(loss, near, retain_graph=True)[0]
        seen.append(slope.abs().mean().item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def derivative_of_a_teacher_as_the_target():
    teacher, student = mlp(2, 1), mlp(2, 1)
    optimizer = torch.optim.Adam(student.parameters(), lr=0.01)
    for _ in range(6):
        x = torch.randn(12, 2, requires_grad=True)
        wanted = torch.autograd.grad(teacher(x).sum(), x)[0]
        slope = torch.autograd.grad(student(x).sum(), x, create_graph=True)[0]
        optimizer.zero_grad()
        F.mse_loss(slope, wanted).backward()
        optimizer.step()


@right
def particles_moved_apart():
    target = torch.distributions.Normal(1.0, 2.0)
    at = torch.randn(12, 1, requires_grad=True)
    optimizer = torch.optim.SGD([at], lr=0.1)
    for _ in range(6):
        score = torch.autograd.grad(target.log_prob(at).sum(), at)[0]
        kernel = (-(at - at.detach().T).square()).exp()
        drive = kernel.detach() @ score / 12
        optimizer.zero_grad()
        (-(drive * at).sum() - kernel.sum() / 12).backward()
        optimizer.step()


def _moved(model, x, y, rate=0.1):
    weights = dict(model.named_parameters())
    inner = F.mse_loss(functional_call(model, weights, (x,)), y)
    slopes = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
    return {name: w - rate * slope for (name, w), slope in zip(weights.items(), slopes, strict=True)}


@right
def moved_weights_are_looked_at_and_the_others_trained():
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        x, y = lines()
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        quick = _moved(model, x[:8], y[:8])
        with torch.no_grad():
            F.mse_loss(functional_call(model, quick, (x[8:],)), y[8:])


@right
def moved_weights_pull_the_model_along():
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(5):
        x, y = lines()
        quick = _moved(model, x, y)
        optimizer.zero_grad()
        for name, weight in model.named_parameters():
            weight.grad = (weight - quick[name]).detach()
        optimizer.step()


@right
def moved_weights_take_the_place_of_the_model():
    model, head = nn.Linear(4, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.01)
    for _ in range(5):
        x, y = lines()
        loss = F.mse_loss(head(model(x)), y)
        slopes = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
        for weight, slope in zip(model.parameters(), slopes, strict=True):
            weight.data = weight - 0.05 * slope
        optimizer.zero_grad()
        F.mse_loss(head(model(x)), y).backward()
        optimizer.step()


@right
def inner_steps_of_which_the_last_is_trained_through():
    model = mlp(out=1)
    outer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(4):
        x, y = lines()
        quick = dict(model.named_parameters())
        for _ in range(3):
            inner = F.mse_loss(functional_call(model, quick, (x[:8],)), y[:8])
            slopes = torch.autograd.grad(inner, list(quick.values()), create_graph=True)
            quick = {name: w - 0.1 * slope for (name, w), slope in zip(quick.items(), slopes, strict=True)}
        loss = F.mse_loss(functional_call(model, quick, (x[8:],)), y[8:])
        outer.zero_grad()
        loss.backward()
        outer.step()
