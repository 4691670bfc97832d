"""Images that are turned by chance, and what tells of the same places and is not."""

import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, Subset

from tests.audit.registry import fault


def _images(count=16, size=8):
    masks = torch.zeros(count, 1, size, size)
    for mask in masks:
        row, column = torch.randint(size - 3, (2,)).tolist()
        mask[:, row : row + 3, column : column + 3] = 1.0
    return masks + 0.3 * torch.randn_like(masks), masks


def _dense(out=1):
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, out, 1))


class Scans(Dataset):
    """Images with their masks, as they are stored."""

    def __init__(self):
        self.images, self.masks = (it.numpy() for it in _images())
        self.rng = np.random.default_rng(0)

    def __len__(self):
        return len(self.images)


@fault("target-not-flipped")
def a_mirrored_scan_with_the_stored_mask():
    class Mirrored(Scans):
        def __getitem__(self, at):
            scan = self.images[at]
            if self.rng.random() < 0.5:
                scan = scan[:, :, ::-1].copy()  # <- here
            return {"scan": torch.from_numpy(scan), "mask": torch.from_numpy(self.masks[at])}

    model = _dense()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        for batch in DataLoader(Mirrored(), batch_size=4):
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(model(batch["scan"]), batch["mask"]).backward()
            optimizer.step()


@fault("target-not-flipped")
def a_transform_given_to_the_data_set():
    class Quarter:
        """Turn an image by a number of right angles."""

        def __call__(self, image):
            turns = random.randint(0, 3)
            return torch.rot90(image, turns, dims=(1, 2))  # <- here

    class Transformed(Scans):
        def __init__(self, transform):
            super().__init__()
            self.transform = transform

        def __getitem__(self, at):
            image, mask = torch.from_numpy(self.images[at]), torch.from_numpy(self.masks[at])
            if self.transform is not None:
                image = self.transform(image)
            return image, mask

    loader = DataLoader(Subset(Transformed(Quarter()), range(12)), batch_size=4, shuffle=True)
    model = _dense()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        for step, (image, mask) in enumerate(loader):
            optimizer.zero_grad()
            loss = F.binary_cross_entropy_with_logits(model(image), mask)
            loss.backward()
            optimizer.step()
            print(step, loss.item())


@fault("target-not-flipped")
def some_images_of_a_batch_flipped():
    x, y = _images()
    model = _dense(2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        for rows in torch.randperm(len(x)).split(8):
            image, label = x[rows], y[rows, 0].long()
            chosen = torch.rand(len(image)) < 0.5
            image[chosen] = image[chosen].flip(-1)  # <- here
            optimizer.zero_grad()
            F.cross_entropy(model(image), label).backward()
            optimizer.step()


@fault("target-not-flipped")
def a_function_for_the_images_alone():
    def augment(batch):
        out = batch + 0.05 * torch.randn_like(batch)
        if random.random() < 0.5:
            out = torch.flip(out, dims=(-2,))  # <- here
        return out

    x, depth = _images()
    model = _dense()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(4):
        for image, target in zip(x.split(4), depth.split(4), strict=True):
            optimizer.zero_grad()
            F.mse_loss(model(augment(image)), target).backward()
            optimizer.step()


@fault("target-not-flipped")
def boxes_that_stay_where_they_were():
    class Boxes(Dataset):
        def __init__(self):
            self.images, _ = _images()
            self.boxes = torch.rand(16, 4)

        def __len__(self):
            return 16

        def __getitem__(self, at):
            image, box = self.images[at], self.boxes[at]
            if torch.rand(1).item() > 0.5:
                image = image.flip(2)  # <- here
            return image, box

    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        for image, box in DataLoader(Boxes(), batch_size=4):
            optimizer.zero_grad()
            F.smooth_l1_loss(model(image), box).backward()
            optimizer.step()
