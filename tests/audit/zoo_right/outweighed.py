"""Right variational autoencoders, whose two terms are reduced in other ways."""

import torch
from torch import nn
from torch.distributions import Bernoulli, Normal, kl_divergence
from torch.nn import functional as F

from tests.audit.coders import learned
from tests.audit.registry import right


def divergence(mean, logvar):
    return -0.5 * (1 + logvar - mean.pow(2) - logvar.exp())


@right
def both_terms_summed():
    def loss_of(decoded, x, mean, logvar):
        return F.mse_loss(decoded, x, reduction="sum") + divergence(mean, logvar).sum()

    learned(loss_of)


@right
def both_terms_summed_and_divided_by_the_rows():
    def loss_of(decoded, x, mean, logvar):
        error = F.binary_cross_entropy_with_logits(decoded, x, reduction="sum")
        return (error + divergence(mean, logvar).sum()) / len(x)

    learned(loss_of)


@right
def both_terms_summed_for_each_row():
    def loss_of(decoded, x, mean, logvar):
        error = (decoded - x).square().sum(dim=1)
        return (error + divergence(mean, logvar).sum(dim=1)).mean()

    learned(loss_of)


@right
def summed_divergence_with_a_small_weight():
    def loss_of(decoded, x, mean, logvar):
        return F.mse_loss(decoded, x) + 1e-3 * divergence(mean, logvar).sum()

    learned(loss_of)


@right
def summed_divergence_divided_by_all_numbers():
    def loss_of(decoded, x, mean, logvar):
        return F.binary_cross_entropy_with_logits(decoded, x) + divergence(mean, logvar).sum() / x.numel()

    learned(loss_of)


@right
def averaged_error_with_a_weight_of_all_its_numbers():
    def loss_of(decoded, x, mean, logvar):
        return x.numel() * F.mse_loss(decoded, x) + divergence(mean, logvar).sum()

    learned(loss_of)


@right
def summed_divergence_that_warms_up():
    steps = iter(range(100))

    def loss_of(decoded, x, mean, logvar):
        return F.mse_loss(decoded, x) + next(steps) / 10_000 * divergence(mean, logvar).sum()

    learned(loss_of)


@right
def distributions_summed_on_both_sides():
    def loss_of(decoded, x, mean, logvar):
        kl = kl_divergence(Normal(mean, (0.5 * logvar).exp()), Normal(0.0, 1.0))
        return kl.sum() - Bernoulli(logits=decoded).log_prob(x.round()).sum()

    learned(loss_of)


@right
def divergence_of_weights_beside_an_averaged_error():
    mean, log_std = nn.Parameter(torch.zeros(16, 4)), nn.Parameter(torch.full((16, 4), -2.0))
    optimizer = torch.optim.Adam([mean, log_std], lr=0.01)
    for _ in range(6):
        x = torch.randn(32, 4)
        weight = mean + log_std.exp() * torch.randn(16, 4)
        kl = 0.5 * (mean**2 + (2 * log_std).exp() - 1 - 2 * log_std).sum()
        loss = F.mse_loss(x @ weight.T, x.repeat(1, 4)) + kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
