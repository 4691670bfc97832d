"""Penalties on the length of a slope that is not each sample's."""

import torch
from torch import nn

from tests.audit.registry import fault


def critic_of(shape):
    """Return a critic of samples of a shape: one score for each."""
    width = torch.Size(shape).numel()
    return nn.Sequential(nn.Flatten(), nn.Linear(width, 16), nn.Tanh(), nn.Linear(16, 1))


def criticised(penalty, shape=(2, 4, 4), steps=4):
    """Train a critic whose slope between real and made samples a penalty holds."""
    critic = critic_of(shape)
    optimizer = torch.optim.Adam(critic.parameters(), lr=0.01)
    for _ in range(steps):
        real, fake = torch.randn(6, *shape) + 1, torch.randn(6, *shape)
        share = torch.rand(6, *(1 for _ in shape))
        between = (share * real + (1 - share) * fake).requires_grad_()
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(critic, between)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("slope-axis")
def length_over_the_channels():
    def penalty(critic, between):
        scores = critic(between)
        slope = torch.autograd.grad(scores, between, torch.ones_like(scores), create_graph=True)[0]
        return ((slope.norm(2, dim=1) - 1) ** 2).mean()  # <- here

    criticised(penalty)


@fault("slope-axis")
def length_over_the_whole_batch():
    def penalty(critic, between):
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        return (slope.norm() - 1).pow(2)  # <- here

    criticised(penalty)


@fault("slope-axis")
def root_of_squares_along_the_last_axis():
    def penalty(critic, between):
        scores = critic(between)[:, 0]
        slope = torch.autograd.grad(scores.sum(), between, create_graph=True)[0]
        squared = (slope**2).sum(dim=-1)  # <- here
        length = torch.sqrt(squared + 1e-12)
        return (length - 1.0).relu().square().mean()

    criticised(penalty, (5, 3))


@fault("slope-axis")
def length_compared_with_ones():
    def penalty(critic, between):
        scores = critic(between)
        slope = torch.autograd.grad(scores, between, torch.ones_like(scores), create_graph=True, retain_graph=True)
        length = torch.linalg.vector_norm(slope[0], dim=(2, 3))  # <- here
        return nn.functional.mse_loss(length, torch.ones_like(length))

    criticised(penalty)
