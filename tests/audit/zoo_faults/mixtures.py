"""Data and noise whose weights do not belong together."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.registry import fault

STEPS = 40
KEPT = (1 - torch.linspace(1e-3, 0.2, STEPS)).cumprod(0)


def denoise(noised, steps=6, shape=(16, 3)):
    """Train a model to tell the noise in what a function makes of data, steps and noise."""
    model = nn.Sequential(nn.Linear(4, 16), nn.SiLU(), nn.Linear(16, shape[-1]))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        x = torch.randn(shape) * 0.3 + 1
        t = torch.randint(0, STEPS, (len(x),))
        noise = torch.randn_like(x)
        mixed = noised(x, t, noise)
        guess = model(torch.cat([mixed.flatten(1), t[:, None] / STEPS], dim=1))
        optimizer.zero_grad()
        F.mse_loss(guess, noise).backward()
        optimizer.step()


@fault("noise-weights")
def noise_without_its_root():
    def noised(x, t, noise):
        share = KEPT[t].unsqueeze(1)
        return share.sqrt() * x + (1 - share) * noise  # <- here

    denoise(noised)


@fault("noise-weights")
def data_without_their_root():
    rest = (1 - KEPT) ** 0.5

    def noised(x, t, noise):
        return x * KEPT[t].view(-1, 1) + noise * rest[t].view(-1, 1)  # <- here

    denoise(noised)


@fault("noise-weights")
def tables_of_which_one_has_no_root():
    class Schedule:
        def __init__(self):
            self.signal = torch.sqrt(KEPT)
            self.spread = 1.0 - KEPT

        def add_noise(self, x, t, noise):
            x_t = self.signal[t][:, None] * x + self.spread[t][:, None] * noise  # <- here
            return x_t

    denoise(Schedule().add_noise)


@fault("noise-weights")
def weights_of_data_and_noise_swapped():
    def noised(x, t, noise):
        share = KEPT[t][:, None]
        return torch.sqrt(1 - share) * x + torch.sqrt(share) * noise  # <- here

    denoise(noised)


@fault("noise-weights")
def neither_has_its_root():
    def noised(x, t, noise):
        share = KEPT[t][:, None]
        return share * x + (1 - share) * noise  # <- here

    denoise(noised)


@fault("noise-weights")
def one_step_for_the_whole_batch():
    model = nn.Linear(3, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(2, 32, 3):
        x, kept = torch.rand(8, 3), KEPT[step].item()
        noise = torch.randn(8, 3)
        mixed = math.sqrt(kept) * x + (1 - kept) * noise  # <- here
        optimizer.zero_grad()
        F.mse_loss(model(mixed), noise).backward()
        optimizer.step()
