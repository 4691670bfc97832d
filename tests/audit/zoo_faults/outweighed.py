"""Variational autoencoders whose divergence outweighs the reconstruction."""

import torch
from torch import nn
from torch.distributions import Normal, kl_divergence
from torch.nn import functional as F

from tests.audit.registry import fault


class Coder(nn.Module):
    """A variational autoencoder of single layers."""

    def __init__(self, width=12, code=3):
        super().__init__()
        self.mean, self.spread = nn.Linear(width, code), nn.Linear(width, code)
        self.decoder = nn.Linear(code, width)

    def forward(self, x):
        mean, spread = self.mean(x), self.spread(x)
        return self.decoder(mean + (0.5 * spread).exp() * torch.randn_like(mean)), mean, spread


def learned(loss_of, steps=6, batch=32):
    """Train it on rows between 0 and 1 by what `loss_of` makes of decoded rows, rows, means and logarithms."""
    coder = Coder()
    optimizer = torch.optim.Adam(coder.parameters(), lr=0.01)
    for _ in range(steps):
        x = torch.rand(batch, 12)
        decoded, mean, logvar = coder(x)
        loss = loss_of(decoded, x, mean, logvar)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


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
