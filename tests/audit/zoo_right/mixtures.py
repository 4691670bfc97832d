"""Data and noise whose weights belong together, or are of another kind."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.registry import right
from tests.audit.zoo_faults.mixtures import KEPT, STEPS, denoise


@right
def roots_on_both():
    def noised(x, t, noise):
        share = KEPT[t].unsqueeze(1)
        return share.sqrt() * x + (1 - share).sqrt() * noise

    denoise(noised)


@right
def a_table_of_roots():
    signal, spread = KEPT**0.5, (1 - KEPT) ** 0.5

    def noised(x, t, noise):
        return spread[t][:, None] * noise + signal[t][:, None] * x

    denoise(noised)


@right
def a_straight_way_from_noise_to_data():
    model = nn.Sequential(nn.Linear(4, 16), nn.SiLU(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        x, t = torch.rand(16, 3), torch.rand(16, 1)
        noise = torch.randn_like(x)
        on_the_way = t * x + (1 - t) * noise
        optimizer.zero_grad()
        F.mse_loss(model(torch.cat([on_the_way, t], dim=1)), x - noise).backward()
        optimizer.step()


@right
def noise_of_growing_spread_beside_the_data():
    spreads = torch.linspace(0.01, 0.9, STEPS)

    def noised(x, t, noise):
        return 1.0 * x + spreads[t][:, None] * noise

    denoise(noised)


@right
def weights_by_the_angle():
    def noised(x, t, noise):
        angle = t[:, None] / STEPS * torch.pi / 2
        return angle.cos() * x + angle.sin() * noise

    denoise(noised)


@right
def steps_counted_from_the_noise_on():
    signal = KEPT.flip(0)

    def noised(x, t, noise):
        share = signal[t][:, None]
        return share.sqrt() * x + (1 - share).sqrt() * noise

    denoise(noised)
