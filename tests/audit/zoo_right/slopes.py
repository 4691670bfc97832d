"""Penalties on a slope's length, of each sample or of each point."""

import torch
from torch import nn

from tests.audit.registry import right
from tests.audit.zoo_faults.slopes import criticised


def _slope(critic, between):
    scores = critic(between)
    return torch.autograd.grad(scores, between, torch.ones_like(scores), create_graph=True)[0]


@right
def length_of_each_sample():
    criticised(lambda critic, between: ((_slope(critic, between).flatten(1).norm(2, dim=1) - 1) ** 2).mean())


@right
def length_over_all_axes_of_a_sample():
    def penalty(critic, between):
        squared = _slope(critic, between).pow(2).sum(dim=(1, 2, 3))
        return ((squared + 1e-12).sqrt() - 1).square().mean()

    criticised(penalty)


@right
def length_of_each_point_in_the_plane():
    criticised(lambda critic, between: ((_slope(critic, between).norm(dim=-1) - 1) ** 2).mean(), (2,))


@right
def squares_of_each_sample_with_no_bound():
    criticised(lambda critic, between: _slope(critic, between).square().sum(dim=1).mean())


@right
def slopes_at_many_points_of_each_shape():
    field = nn.Sequential(nn.Linear(3, 16), nn.Softplus(10), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(field.parameters(), lr=0.01)
    for _ in range(4):
        points = torch.randn(4, 9, 3, requires_grad=True)
        distance = field(points)
        slope = torch.autograd.grad(distance, points, torch.ones_like(distance), create_graph=True)[0]
        loss = ((slope.norm(dim=-1) - 1) ** 2).mean() + distance.abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def lengths_over_channels_that_are_to_be_few():
    criticised(lambda critic, between: 0.1 * _slope(critic, between).norm(dim=1).sum(dim=(1, 2)).mean())
