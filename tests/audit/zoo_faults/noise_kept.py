"""Denoising: the target is the input with its noise."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import mlp
from tests.audit.registry import fault


def denoised(loss_of, steps=5):
    """Train a network by what `loss_of` makes of it and of clean points."""
    model = mlp(6, 6, 12)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    points = torch.rand(32, 6)
    for _ in range(steps):
        for rows in torch.randperm(32).split(16):
            optimizer.zero_grad()
            loss_of(model, points[rows]).backward()
            optimizer.step()


@fault("noise-copied")
def clean_points_overwritten():
    def corrupt(x):
        return (x + 0.3 * torch.randn_like(x)).clamp(0, 1)

    def loss(model, x):
        x = corrupt(x)
        return F.mse_loss(model(x), x)  # <- here

    denoised(loss)


@fault("noise-copied")
def noisy_points_as_the_target():
    def loss(model, clean):
        noise = torch.normal(0.0, 0.2, size=clean.shape)
        noisy = clean + noise
        return (model(noisy) - noisy).pow(2).mean()  # <- here

    denoised(loss)


@fault("noise-copied")
def hidden_entries_in_both():
    class Denoiser(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            x = x * (torch.rand_like(x) > 0.3)
            return self.inner(x), x

    def loss(model, x):
        restored, wanted = Denoiser(model)(x)
        return F.binary_cross_entropy_with_logits(restored, wanted)  # <- here

    denoised(loss)


@fault("noise-copied")
def noise_added_in_place():
    def loss(model, batch):
        clean = batch
        batch += 0.2 * torch.randn(batch.shape)
        return F.smooth_l1_loss(model(batch), clean)  # <- here

    denoised(loss)


@fault("noise-copied")
def a_module_that_compares_with_what_it_was_given():
    class Restored(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner, self.criterion = inner, nn.L1Loss()

        def forward(self, batch):
            noisy_batch = batch + torch.randn_like(batch) * 0.2
            return self.criterion(self.inner(noisy_batch), noisy_batch)  # <- here

    denoised(lambda model, x: Restored(model)(x))
