"""What climbs on purpose, and what only looks as if it did."""

import torch
from torch import nn
from torch.distributions import Normal
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import right


@right
def images_changed_so_that_they_are_missed():
    net, (x, y) = mlp(), blobs(16)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(10):
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    shift = torch.zeros_like(x, requires_grad=True)
    for _ in range(12):
        loss = F.cross_entropy(net(x + shift), y)
        (g,) = torch.autograd.grad(loss, shift)
        with torch.no_grad():
            shift += 0.1 * g.sign()


@right
def inputs_moved_up_the_loss_of_a_model_that_was_loaded():
    net, (x, y) = mlp(), blobs(16)
    net.requires_grad_(False)
    for _ in range(12):
        x = x.detach().requires_grad_()
        loss = F.cross_entropy(net(x), y)
        (g,) = torch.autograd.grad(loss, x)
        x = x + 0.05 * g


@right
def principal_direction_by_ascent():
    x = torch.randn(64, 4) * torch.tensor([3.0, 1.0, 0.5, 0.2])
    w = torch.ones(4, requires_grad=True)
    for _ in range(12):
        spread = ((x @ w) ** 2).mean()
        (g,) = torch.autograd.grad(spread, w)
        with torch.no_grad():
            w += 0.1 * g
            w /= w.norm()


@right
def log_density_climbed_by_hand():
    x = torch.randn(64) + 2
    mean = torch.zeros(1, requires_grad=True)
    for _ in range(12):
        value = -F.mse_loss(mean.expand(64), x)
        value.backward()
        with torch.no_grad():
            mean += 0.1 * mean.grad
        mean.grad = None


@right
def log_density_given_to_an_optimizer_that_maximizes():
    x = torch.randn(64) + 2
    mean = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([mean], lr=0.1, maximize=True)
    for _ in range(12):
        optimizer.zero_grad()
        Normal(mean, 1.0).log_prob(x).mean().backward()
        optimizer.step()


@right
def minus_and_maximize_together():
    net, (x, y) = mlp(), blobs(32)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, maximize=True)
    for _ in range(14):
        optimizer.zero_grad()
        (-F.cross_entropy(net(x), y)).backward()
        optimizer.step()


@right
def generator_that_maximizes_the_other_ones_loss():
    generator, judge = nn.Linear(2, 4), nn.Linear(4, 1)
    opt_g = torch.optim.SGD(generator.parameters(), lr=0.05, maximize=True)
    opt_j = torch.optim.SGD(judge.parameters(), lr=0.05)
    for _ in range(14):
        real, noise = torch.randn(16, 4) + 1, torch.randn(16, 2)
        opt_j.zero_grad()
        both = judge(torch.cat([real, generator(noise).detach()]))
        F.binary_cross_entropy_with_logits(both, torch.cat([torch.ones(16, 1), torch.zeros(16, 1)])).backward()
        opt_j.step()
        opt_g.zero_grad()
        F.binary_cross_entropy_with_logits(judge(generator(noise)), torch.zeros(16, 1)).backward()
        opt_g.step()


@right
def knowledge_that_is_to_be_forgotten():
    net, (x, y) = mlp(), blobs(32)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    forget = x[:8], y[:8]
    for _ in range(12):
        optimizer.zero_grad()
        (-F.cross_entropy(net(forget[0]), forget[1])).backward()
        optimizer.step()


@right
def rate_too_large_for_a_descent():
    x, y = lines(64)
    w = torch.zeros(4, 1, requires_grad=True)
    for _ in range(12):
        loss = ((x @ w - y) ** 2).mean()
        (g,) = torch.autograd.grad(loss, w)
        with torch.no_grad():
            w -= 2.0 * g


@right
def descent_with_a_negative_number():
    net, (x, y) = mlp(), blobs(32)
    for _ in range(12):
        net.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        with torch.no_grad():
            for p in net.parameters():
                p.add_(p.grad, alpha=-0.1)


@right
def multiplier_of_a_bound_by_hand():
    x, y = lines(64)
    w, lam = torch.zeros(4, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
    for _ in range(12):
        loss = ((x @ w - y) ** 2).mean() + (lam * (w.norm() - 1)).sum()
        by_w, by_lam = torch.autograd.grad(loss, [w, lam])
        with torch.no_grad():
            w -= 0.05 * by_w
            lam += 0.05 * by_lam
