"""Terms of a loss with the wrong sign."""

import torch
from torch import nn
from torch.distributions import Normal
from torch.nn import functional as F

from tests.audit.parts import blobs, epoch_of, lines, mlp
from tests.audit.registry import fault


@fault("quantile-reversed")
def pinball_of_what_the_prediction_has_too_much():
    q = 0.9

    def pinball(p, t):
        e = p - t  # <- here
        return torch.max(q * e, (q - 1) * e).mean()

    epoch_of(nn.Linear(4, 1), pinball, *lines(64))


@fault("quantile-reversed")
def several_quantiles_in_a_module():
    class Quantiles(nn.Module):
        def __init__(self, levels=(0.1, 0.5, 0.9)):
            super().__init__()
            self.levels = levels

        def forward(self, preds, target):
            losses = []
            for i, level in enumerate(self.levels):
                errors = preds[:, i] - target[:, 0]  # <- here
                losses.append(torch.maximum((level - 1) * errors, level * errors).unsqueeze(1))
            return torch.mean(torch.sum(torch.cat(losses, dim=1), dim=1))

    epoch_of(mlp(out=3), Quantiles(), *lines(64))


@fault("quantile-reversed")
def choice_by_the_sign_of_a_difference():
    def loss_of(out, y, tau=0.8):
        diff = out - y  # <- here
        return torch.where(diff >= 0, tau * diff, (tau - 1) * diff).mean()

    epoch_of(nn.Linear(4, 1), loss_of, *lines(64))


@fault("quantile-reversed")
def weight_made_of_the_sign():
    def loss_of(out, y, tau=0.8):
        u = out - y  # <- here
        return (u * (tau - (u < 0).float())).mean()

    epoch_of(nn.Linear(4, 1), loss_of, *lines(64))


@fault("quantile-reversed")
def rest_of_the_quantile_for_what_is_missing():
    def loss_of(out, y, q=0.8):
        e = y - out  # <- here
        return torch.max((1 - q) * e, -q * e).mean()

    epoch_of(nn.Linear(4, 1), loss_of, *lines(64))


@fault("penalty-signed")
def sum_of_all_parameters():
    net, (x, y) = nn.Linear(4, 1), lines(64)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        reg = sum(p.sum() for p in net.parameters())  # <- here
        loss = loss + 0.01 * reg
        loss.backward()
        optimizer.step()


@fault("penalty-signed")
def sum_over_named_weights():
    net, (x, y) = mlp(), blobs(64)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(6):
        penalty = 0.0
        for name, weight in net.named_parameters():
            if "weight" in name:
                penalty = penalty + torch.sum(weight)  # <- here
        optimizer.zero_grad()
        (F.cross_entropy(net(x), y) + 1e-3 * penalty).backward()
        optimizer.step()


@fault("penalty-signed")
def mean_of_one_layer():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 3)

        def forward(self, x):
            return self.last(self.first(x).relu())

        def sparsity(self):
            return self.first.weight.mean()  # <- here

    net = Net()
    epoch_of(net, lambda out, y: F.cross_entropy(out, y) + 0.1 * net.sparsity(), *blobs(64))


def flow(loss_of, count=2, steps=6):
    """Train a scale and a place by what `loss_of` makes of points and of both."""
    x = torch.randn(64, count) * 2 + 1
    s, b = nn.Parameter(torch.zeros(count)), nn.Parameter(torch.zeros(count))
    optimizer = torch.optim.Adam([s, b], lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(x, s, b).backward()
        optimizer.step()


@fault("volume-reversed")
def scale_rewarded_for_shrinking():
    def loss_of(x, s, b):
        z = (x - b) * torch.exp(-s)
        logdet = s.sum()  # <- here
        return -(Normal(0, 1).log_prob(z).sum(1) + logdet).mean()

    flow(loss_of)


@fault("volume-reversed")
def determinant_taken_away():
    def loss_of(x, s, b):
        z = x * s.exp() + b
        log_det = s.sum()  # <- here
        return -(Normal(0, 1).log_prob(z).sum(dim=1) - log_det).mean()

    flow(loss_of)


class Coupling(nn.Module):
    def __init__(self, sign=-1):
        super().__init__()
        self.scale, self.shift, self.sign = nn.Linear(2, 2), nn.Linear(2, 2), sign

    def forward(self, x):
        kept, moved = x[:, :2], x[:, 2:]
        s, t = torch.tanh(self.scale(kept)), self.shift(kept)
        moved = (moved - t) * torch.exp(-s)
        log_det = self.sign * s.sum(dim=1)
        return torch.cat([moved, kept], 1), log_det


@fault("volume-reversed")
def couplings_that_shrink_for_nothing():
    class Wrong(Coupling):
        def forward(self, x):
            kept, moved = x[:, :2], x[:, 2:]
            s, t = torch.tanh(self.scale(kept)), self.shift(kept)
            moved = (moved - t) * torch.exp(-s)
            log_det = s.sum(dim=1)  # <- here
            return torch.cat([moved, kept], 1), log_det

    coupled([Wrong(), Wrong()])


def coupled(layers):
    layers = nn.ModuleList(layers)
    optimizer = torch.optim.Adam(layers.parameters(), lr=0.01)
    base = Normal(0.0, 1.0)
    for _ in range(6):
        z, total = torch.randn(32, 4) + 1, 0.0
        for layer in layers:
            z, log_det = layer(z)
            total = total + log_det
        optimizer.zero_grad()
        loss = -(base.log_prob(z).sum(1) + total).mean()
        loss.backward()
        optimizer.step()


def adapted(reverse):
    """Train features for a label, and by what `reverse` makes of them for a domain."""
    f, c, d = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 3), nn.Linear(8, 2)
    optimizer = torch.optim.Adam([*f.parameters(), *c.parameters(), *d.parameters()], lr=0.01)
    for _ in range(6):
        x, y = blobs(32)
        h = f(x)
        optimizer.zero_grad()
        (F.cross_entropy(c(h), y) + F.cross_entropy(d(reverse(h)), (x[:, 3] > 0).long())).backward()
        optimizer.step()


@fault("reversal-missing")
def reversal_that_hands_on():
    class GradientReversal(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, lam):
            ctx.lam = lam
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return ctx.lam * g, None  # <- here

    adapted(lambda h: GradientReversal.apply(h, 1.0))


@fault("reversal-missing")
def reversal_in_a_layer_that_hands_on():
    class Grl(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output  # <- here

    class Layer(nn.Module):
        def forward(self, x):
            return Grl.apply(x)

    adapted(Layer())


@fault("reversal-missing")
def function_before_a_domain_that_hands_on():
    class R(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.weight = weight
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            grad = g * ctx.weight
            return grad, None  # <- here

    def reverse(h):
        domain_features = R.apply(h, 0.5)
        return domain_features

    adapted(reverse)
