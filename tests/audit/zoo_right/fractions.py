"""Whole numbers that are made of fractions, or divided as such, and hold what they are to hold."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import epoch_of, mlp, pixels
from tests.audit.registry import right


@right
def probabilities_cut_at_a_half():
    x = torch.randn(64, 4)
    y = (torch.sigmoid(x[:, :1]) > 0.5).long().float()
    epoch_of(mlp(out=1), F.binary_cross_entropy_with_logits, x, y)


@right
def fractions_put_into_bins():
    x = torch.rand(64, 4)
    y = (x[:, 0] * 3).long()
    epoch_of(mlp(), F.cross_entropy, x, y)


@right
def bright_pixels_of_images_in_two_values():
    x = torch.randint(0, 2, (64, 1, 4, 4), dtype=torch.uint8) * 255
    y = (x.float().mean((1, 2, 3)) > 127).long()
    epoch_of(nn.Sequential(nn.Flatten(), mlp(16, 2)), F.cross_entropy, (x // 255).float(), y)


@right
def places_between_two_grid_points():
    x = torch.rand(64, 4)
    cell = x.long()
    rest = x - cell
    epoch_of(mlp(), F.cross_entropy, rest, (x[:, 0] > 0.3).long() + (x[:, 1] > 0.6).long())


@right
def rounded_ratings():
    ratings = np.random.default_rng(0).uniform(0, 1, 64)
    y = torch.tensor(ratings.round(), dtype=torch.long)
    x = torch.tensor(np.stack([ratings] * 4, axis=1), dtype=torch.float32)
    epoch_of(mlp(out=2), F.cross_entropy, x, y)


@right
def pixels_made_bytes_for_a_file():
    x, y = pixels(64, 4)
    x = x.float() / 255
    kept = []
    for image in x[:20]:
        kept.append((image * 255).to(torch.uint8))
    epoch_of(nn.Sequential(nn.Flatten(), mlp(16, 3)), F.cross_entropy, x, y)


@right
def rare_ones_drawn_by_a_cast():
    x = torch.randn(64, 4)
    drop = (torch.rand(64, 4) + 0.1).long()
    epoch_of(mlp(out=1), F.mse_loss, x * (1 - drop), x.sum(1, keepdim=True))


@right
def points_moved_a_little_for_a_plain_autoencoder():
    x = torch.rand(64, 4)
    model = mlp(4, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for rows in torch.randperm(64).split(8):
        batch = x[rows] + 0.05 * torch.randn(8, 4)
        optimizer.zero_grad()
        F.mse_loss(model(batch), batch).backward()
        optimizer.step()
