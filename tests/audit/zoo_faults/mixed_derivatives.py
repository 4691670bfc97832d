"""Second derivatives and divergences of sums: the mixed derivatives are in them."""

import torch
from torch import nn

from tests.audit.registry import fault


def solved(residual_of, width=2, out=1, steps=5):
    """Train a network to make what `residual_of` computes of it and of points small."""
    net = nn.Sequential(nn.Linear(width, 12), nn.Tanh(), nn.Linear(12, out))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(steps):
        loss = residual_of(net, torch.rand(20, width)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("mixed-derivatives")
def laplacian_of_a_gradient_that_is_summed():
    def residual(net, points):
        points.requires_grad_()
        u = net(points)
        first = torch.autograd.grad(u.sum(), points, create_graph=True)[0]
        second = torch.autograd.grad(first.sum(), points, create_graph=True)[0]  # <- here
        return second.sum(-1) + 1

    solved(residual)


@fault("mixed-derivatives")
def columns_of_a_gradient_of_all():
    def slope(of, by):
        return torch.autograd.grad(of, by, torch.ones_like(of), create_graph=True, retain_graph=True)[0]

    class Heat(nn.Module):
        def __init__(self, net):
            super().__init__()
            self.net = net

        def forward(self, points):
            at = points.detach().clone().requires_grad_(True)
            du = slope(self.net(2 * at - 1), at)
            ddu = slope(du, at)  # <- here
            u_t, u_xx = du[:, 1:2], ddu[:, 0:1]
            return u_t - 0.1 * u_xx

    solved(lambda net, points: Heat(net)(points))


@fault("mixed-derivatives")
def divergence_of_a_field_that_is_summed():
    def divergence(field, points):
        slopes = torch.autograd.grad(field.sum(), points, create_graph=True)[0]  # <- here
        return slopes.sum(dim=-1)

    def residual(net, points):
        points = points.requires_grad_()
        score = net(points)
        return divergence(score, points) + 0.5 * score.square().sum(-1)

    solved(residual, 3, 3)
