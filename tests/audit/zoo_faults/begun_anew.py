"""Generators of one's own that begin anew at each step, and images whose colours are read as rows."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from tests.audit.parts import blobs, mlp
from tests.audit.registry import fault


@fault("seed-repeats")
def noise_from_a_generator_made_for_each_batch():
    def noisy(x):
        generator = torch.Generator().manual_seed(7)
        return x + 0.3 * torch.randn(x.shape, generator=generator)  # <- here

    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(noisy(x)), y).backward()
        optimizer.step()


@fault("seed-repeats")
def one_order_for_all_epochs():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator()
    for _ in range(5):
        generator.manual_seed(0)
        order = torch.randperm(len(x), generator=generator)  # <- here
        for rows in order.split(8):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()


@fault("view-not-transpose")
def colours_that_are_read_as_rows():
    class Images(Dataset):
        def __init__(self):
            self.images = (255 * torch.rand(24, 6, 6, 3)).to(torch.uint8)
            self.labels = torch.randint(0, 2, (24,))

        def __len__(self):
            return len(self.labels)

        def __getitem__(self, index):
            image = self.images[index].float() / 255
            return image.view(3, 6, 6), self.labels[index]  # <- here

    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        for images, labels in DataLoader(Images(), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()


@fault("view-not-transpose")
def a_whole_set_of_images_that_is_reshaped_once():
    images = torch.rand(24, 6, 6, 3).reshape(24, 3, 6, 6)  # <- here
    labels = torch.randint(0, 2, (24,))
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(4):
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
