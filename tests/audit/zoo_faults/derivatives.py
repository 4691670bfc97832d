"""Derivatives by an input that reach the loss as numbers."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import mlp
from tests.audit.registry import fault


@fault("derivative-cut")
def decay_equation_without_its_second_graph():
    model = mlp(1, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        t = torch.rand(12, 1).requires_grad_()
        u = model(t)
        (slope,) = torch.autograd.grad(u.sum(), t, retain_graph=True)  # <- here
        loss = (slope + 3 * u).square().mean() + (model(torch.zeros(1, 1)) - 1).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("derivative-cut")
def second_derivative_cut():
    model = mlp(1, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def bend(x):
        u = model(x)
        first = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]
        return u, torch.autograd.grad(first, x, torch.ones_like(first), retain_graph=True)[0]  # <- here

    for _ in range(6):
        x = torch.linspace(0, 1, 9)[:, None].requires_grad_()
        u, second = bend(x)
        inside = F.mse_loss(u + second, torch.zeros_like(u))
        optimizer.zero_grad()
        (inside + u[0].square().sum()).backward()
        optimizer.step()


@fault("derivative-cut", "constant-term")
def forces_of_an_energy_without_graph():
    class Energy(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = mlp(6, 1)

        def forward(self, at):
            energy = self.net(at.flatten(1))
            return energy, -torch.autograd.grad(energy.sum(), at, retain_graph=True)[0]  # <- here

    model = Energy()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        at = torch.randn(8, 2, 3, requires_grad=True)
        energy, force = model(at)
        loss = F.l1_loss(energy, at.detach().square().sum((1, 2))[:, None]) + F.mse_loss(force, -2 * at.detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("derivative-cut", "constant-term")
def penalty_of_a_critic_without_graph():
    critic = mlp(2, 1)
    optimizer = torch.optim.Adam(critic.parameters(), lr=0.01)
    for _ in range(6):
        real, fake = torch.randn(8, 2) + 1, torch.randn(8, 2)
        between = (0.5 * real + 0.5 * fake).requires_grad_()
        slope = torch.autograd.grad(critic(between).sum(), between)[0]  # <- here
        penalty = (slope.norm(dim=1) - 1).square().mean()
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
