"""Variational autoencoders whose divergence outweighs the reconstruction."""

import torch
from torch.distributions import Normal, kl_divergence
from torch.nn import functional as F

from tests.audit.coders import learned
from tests.audit.registry import fault


@fault("kl-outweighs")
def divergence_of_the_batch_beside_a_mean_of_its_numbers():
    def loss_of(decoded, x, mu, logvar):
        error = F.binary_cross_entropy_with_logits(decoded, x)
        return error - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())  # <- here

    learned(loss_of)


@fault("kl-outweighs")
def divergence_of_a_distribution_summed_beside_a_mean_of_squares():
    def loss_of(decoded, x, mean, logvar):
        code = Normal(mean, (0.5 * logvar).exp())
        kl = kl_divergence(code, Normal(torch.zeros(3), torch.ones(3)))  # <- here
        return ((decoded - x) ** 2).mean() + kl.sum()

    learned(loss_of)


@fault("kl-outweighs")
def errors_of_rows_averaged_and_divergences_of_rows_added():
    def loss_of(decoded, x, mean, log_std):
        rows = F.mse_loss(decoded, x, reduction="none").sum(dim=1)
        own = (mean**2 + torch.exp(log_std) ** 2 - 1 - 2 * log_std) / 2  # <- here
        return rows.mean() + own.sum(dim=1).sum()

    learned(loss_of)


@fault("kl-outweighs")
def likelihood_averaged_and_divergence_by_a_variance():
    def loss_of(decoded, x, mean, spread):
        fit = -Normal(decoded, 1.0).log_prob(x).mean()
        variance = F.softplus(spread)
        return fit + 0.5 * (variance.square() + mean.square() - variance.square().log() - 1).sum()  # <- here

    learned(loss_of)
