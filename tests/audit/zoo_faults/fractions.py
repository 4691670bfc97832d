"""Fractions that become whole numbers: targets and inputs that are nearly all 0."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from tests.audit.parts import epoch_of, mlp
from tests.audit.registry import fault


@fault("cast-to-zeros")
def probabilities_as_whole_numbers():
    x = torch.randn(64, 4)
    y = torch.sigmoid(3 * x[:, :1]).long().float()  # <- here
    epoch_of(mlp(out=1), F.binary_cross_entropy_with_logits, x, y)


@fault("cast-to-zeros")
def pixels_divided_as_whole_numbers():
    x = torch.randint(0, 256, (64, 1, 4, 4), dtype=torch.uint8)
    y = (x.float().mean((1, 2, 3)) > 127).long()
    x = (x // 255).float()  # <- here
    epoch_of(nn.Sequential(nn.Flatten(), mlp(16, 2)), F.cross_entropy, x, y)


@fault("cast-to-zeros")
def scores_of_classes_given_a_type():
    chances = np.random.default_rng(0).uniform(0.05, 0.95, 64)
    y = torch.tensor(chances, dtype=torch.int64)  # <- here
    x = torch.tensor(np.stack([chances] * 4, axis=1), dtype=torch.float32)
    epoch_of(mlp(out=2), F.cross_entropy, x, y)


@fault("cast-to-zeros")
def images_from_0_to_1_put_into_bytes():
    class Images(Dataset):
        def __init__(self):
            self.images = torch.rand(48, 1, 4, 4)
            self.labels = (self.images.mean((1, 2, 3)) > 0.5).long()

        def __len__(self):
            return len(self.images)

        def __getitem__(self, index):
            image = self.images[index].to(torch.uint8)  # <- here
            return image.float(), self.labels[index]

    model = nn.Sequential(nn.Flatten(), mlp(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(2):
        for images, labels in DataLoader(Images(), 12, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
