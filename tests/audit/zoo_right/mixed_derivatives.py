"""Second derivatives that are what they are used as, and products with a Hessian."""

import torch

from tests.audit.registry import right
from tests.audit.zoo_faults.mixed_derivatives import solved


def slope(of, by):
    return torch.autograd.grad(of, by, torch.ones_like(of), create_graph=True)[0]


@right
def each_column_by_itself():
    def residual(net, points):
        points.requires_grad_()
        first = slope(net(points), points)
        parts = [slope(first[:, at], points)[:, at] for at in range(points.shape[1])]
        return torch.stack(parts, 1).sum(1) + 1

    solved(residual)


@right
def coordinates_apart():
    def residual(net, points):
        x, y = (it.requires_grad_() for it in points.clone().split(1, dim=1))
        u = net(torch.cat([x, y], dim=1))
        return (slope(slope(u, x), x) + slope(slope(u, y), y)).sum(dim=1)

    solved(residual)


@right
def one_coordinate_that_needs_no_more():
    def residual(net, points):
        t = points.requires_grad_()
        u = net(t)
        return slope(slope(u, t), t).sum(dim=1) + u[:, 0]

    solved(residual, 1)


@right
def estimate_of_a_trace_by_chance():
    def residual(net, points):
        points.requires_grad_()
        score = net(points)
        signs = torch.randint(0, 2, score.shape).float() * 2 - 1
        divergence = (torch.autograd.grad(score, points, signs, create_graph=True)[0] * signs).sum(dim=-1)
        return divergence + 0.5 * score.square().sum(-1)

    solved(residual, 3, 3)


@right
def curvature_of_a_function_of_each_entry():
    def residual(net, points):
        shift = net(points.detach())
        at = points.clone().requires_grad_()
        first = slope(torch.sin(at * shift).exp(), at)
        return slope(first, at).sum(dim=1)

    solved(residual)
