"""Denoising with targets that are clean, or noise that is meant to be in both."""

import torch
from torch.nn import functional as F

from tests.audit.registry import right
from tests.audit.zoo_faults.noise_kept import denoised


@right
def clean_points_kept():
    def loss(model, x):
        noisy = (x + 0.3 * torch.randn_like(x)).clamp(0, 1)
        return F.mse_loss(model(noisy), x)

    denoised(loss)


@right
def noise_as_the_target_of_denoising():
    def loss(model, x):
        noise = torch.randn_like(x)
        noisy = 0.8 * x + 0.6 * noise
        return F.mse_loss(model(noisy), noise)

    denoised(loss)


@right
def correction_that_is_added_to_noisy_points():
    def loss(model, x):
        noisy = x + 0.3 * torch.randn_like(x)
        return (noisy + model(noisy) - x).square().mean()

    denoised(loss)


@right
def corrupted_twice_with_two_draws():
    def loss(model, x):
        one, other = x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
        return F.mse_loss(model(one), other)

    denoised(loss)


@right
def binary_points_that_are_drawn():
    def loss(model, x):
        x = torch.bernoulli(x)
        return F.binary_cross_entropy_with_logits(model(x), x)

    denoised(loss)


@right
def hidden_entries_and_whole_targets():
    def loss(model, x):
        kept = (torch.rand_like(x) > 0.3).float()
        return ((model(x * kept) - x).square() * (1 - kept)).mean()

    denoised(loss)


@right
def noisy_points_and_a_target_of_their_own():
    def loss(model, x):
        noisy = x + 0.2 * torch.randn_like(x)
        wanted = 0.5 * (x + x.flip(1))
        return F.mse_loss(model(noisy), wanted)

    denoised(loss)


@right
def noise_that_is_predicted_beside_a_reconstruction():
    def loss(model, x):
        noise = 0.2 * torch.randn_like(x)
        noisy = x + noise
        found = model(noisy)
        return F.mse_loss(found, noise) + 0.1 * F.mse_loss(noisy - found, x)

    denoised(loss)
