"""Terms of a loss whose signs are right, and only look as if they were not."""

import torch
from torch import nn
from torch.distributions import Normal
from torch.nn import functional as F

from tests.audit.parts import blobs, epoch_of, lines, mlp
from tests.audit.registry import right
from tests.audit.zoo_faults.misdirected import Coupling, adapted, coupled, flow


@right
def pinball_of_what_the_prediction_lacks():
    q = 0.9

    def pinball(p, t):
        e = t - p
        return torch.max(q * e, (q - 1) * e).mean()

    epoch_of(nn.Linear(4, 1), pinball, *lines(64))


@right
def pinball_with_both_turned_round():
    def pinball(p, t, q=0.9):
        e = p - t
        return torch.max((1 - q) * e, -q * e).mean()

    epoch_of(nn.Linear(4, 1), pinball, *lines(64))


@right
def pinball_chosen_by_what_is_below():
    def pinball(p, t, tau=0.8):
        diff = p - t
        return torch.where(diff < 0, -tau * diff, (1 - tau) * diff).mean()

    epoch_of(nn.Linear(4, 1), pinball, *lines(64))


@right
def pinball_of_the_median():
    def pinball(p, t, q=0.5):
        e = p - t
        return torch.max(q * e, (q - 1) * e).mean()

    epoch_of(nn.Linear(4, 1), pinball, *lines(64))


@right
def pinball_by_the_sign_of_what_is_lacking():
    def loss_of(out, y, tau=0.8):
        u = y - out
        return (u * (tau - (u < 0).float())).mean()

    epoch_of(nn.Linear(4, 1), loss_of, *lines(64))


@right
def leaky_loss_that_is_no_quantile():
    def loss_of(out, y, slope=0.2):
        e = out - y
        return torch.max(e, slope * e).square().mean()

    epoch_of(nn.Linear(4, 1), loss_of, *lines(64))


@right
def sum_of_sizes_and_of_squares():
    net, (x, y) = mlp(), blobs(64)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(6):
        l1 = sum(p.abs().sum() for p in net.parameters())
        l2 = sum(p.pow(2).sum() for p in net.parameters())
        optimizer.zero_grad()
        (F.cross_entropy(net(x), y) + 1e-4 * l1 + 1e-4 * l2).backward()
        optimizer.step()


@right
def sum_of_weights_that_are_never_negative():
    net, (x, y) = nn.Linear(4, 1), lines(64)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    net.weight.data.abs_()
    for _ in range(6):
        optimizer.zero_grad()
        (F.mse_loss(net(x), y) + 0.1 * net.weight.sum()).backward()
        optimizer.step()
        net.weight.data.clamp_(min=0)


@right
def weights_summed_for_nothing():
    net, (x, y) = nn.Linear(4, 1), lines(64)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        touched = sum(p.sum() for p in net.parameters())  # all of them get a gradient
        (F.mse_loss(net(x), y) + 0.0 * touched).backward()
        optimizer.step()


@right
def weights_of_tasks_by_their_noise():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.noise = nn.Linear(4, 2), nn.Parameter(torch.zeros(2))

        def forward(self, x):
            return self.net(x)

    net, (x, y) = Both(), lines(64)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        errors = (net(x) - y).square().mean(0)
        (errors * torch.exp(-net.noise) + net.noise).sum().backward()
        optimizer.step()


@right
def volume_of_a_scale_divided_by():
    def loss_of(x, s, b):
        z = (x - b) * torch.exp(-s)
        log_det = -s.sum()
        return -(Normal(0, 1).log_prob(z).sum(1) + log_det).mean()

    flow(loss_of)


@right
def volume_of_a_scale_multiplied_by():
    def loss_of(x, s, b):
        z = x * s.exp() + b
        return -(Normal(0, 1).log_prob(z).sum(dim=1) + s.sum()).mean()

    flow(loss_of)


@right
def volume_on_the_way_from_the_base():
    def loss_of(x, s, b):
        z = torch.randn(64, 2)
        sample, log_det = z * s.exp() + b, s.sum()
        log_q = Normal(0, 1).log_prob(z).sum(1) - log_det
        return (log_q - Normal(1.0, 2.0).log_prob(sample).sum(1)).mean()

    flow(loss_of)


@right
def couplings_that_pay_for_shrinking():
    coupled([Coupling(), Coupling()])


@right
def gradient_made_smaller_on_purpose():
    class GradMultiply(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.scale = scale
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return ctx.scale * g, None

    adapted(lambda h: GradMultiply.apply(h, 0.1))


@right
def reversal_with_its_minus():
    class GradientReversal(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, lam):
            ctx.lam = lam
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g.neg() * ctx.lam, None

    adapted(lambda h: GradientReversal.apply(h, 1.0))


@right
def reversal_given_a_negative_weight():
    class ReverseGrad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.weight = weight
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.weight, None

    adapted(lambda h: ReverseGrad.apply(h, -0.5))


@right
def sequence_that_is_reversed():
    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.flip(1)

        @staticmethod
        def backward(ctx, g):
            return g.flip(1)

    adapted(Reverse.apply)
