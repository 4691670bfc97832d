"""A variational autoencoder, and how the loops of both zoos train it."""

import torch
from torch import nn


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
