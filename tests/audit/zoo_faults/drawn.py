"""Images and what tells of the same places, each turned by a draw of its own."""

import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from tests.audit.registry import fault


def _images(count=16, size=8):
    masks = torch.zeros(count, 1, size, size)
    for mask in masks:
        row, column = torch.randint(size - 3, (2,)).tolist()
        mask[:, row : row + 3, column : column + 3] = 1.0
    return masks + 0.3 * torch.randn_like(masks), masks


def segmented(data, loss_of=F.binary_cross_entropy_with_logits):
    """Train on pairs of an image and its mask."""
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        for image, mask in DataLoader(data, batch_size=4, shuffle=True):
            optimizer.zero_grad()
            loss_of(model(image), mask).backward()
            optimizer.step()


class Slides(Dataset):
    """Images with their masks, and what is made of a pair."""

    def __init__(self, change=None):
        self.pictures, self.regions = _images()
        self.change = change

    def __len__(self):
        return len(self.pictures)


class Upside:
    """Turn an image by chance."""

    def __init__(self, share):
        self.share = share

    def __call__(self, picture):
        return picture.flip(-2) if torch.rand(1).item() < self.share else picture


class Chain:
    """Call several changes one after the other."""

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, picture):
        for one in self.transforms:
            picture = one(picture)
        return picture


@fault("target-not-flipped")
def a_chain_of_changes_called_for_each():
    class Chained(Slides):
        def __getitem__(self, at):
            x = self.change(self.pictures[at])
            y = self.change(self.regions[at])  # <- here
            return x, y

    segmented(Chained(Chain([Upside(0.5)])))


@fault("target-not-flipped")
def a_random_number_for_each():
    class Twice(Slides):
        def __getitem__(self, at):
            picture, region = self.pictures[at], self.regions[at]
            if random.random() < 0.5:
                picture = torch.flip(picture, [-1])
            if random.random() < 0.5:
                region = torch.flip(region, [-1])  # <- here
            return picture, region

    segmented(Twice())


@fault("target-not-flipped")
def each_of_a_pair_in_a_comprehension():
    def mirrored(t):
        if np.random.rand() > 0.5:
            t = torch.fliplr(t)
        return t

    class Both(Slides):
        def __getitem__(self, at):
            scan, truth = self.pictures[at][0], self.regions[at][0]
            scan, truth = (mirrored(it) for it in (scan, truth))  # <- here
            return scan[None], truth[None]

    segmented(Both())


@fault("target-not-flipped")
def a_method_that_draws_quarter_turns():
    class Quarters(Slides):
        def _turn(self, grid):
            return torch.rot90(grid, random.randint(0, 3), (-2, -1))

        def __getitem__(self, at):
            return self._turn(self.pictures[at]), self._turn(self.regions[at])  # <- here

    segmented(Quarters())


@fault("target-not-flipped")
def batches_turned_apart_in_the_loop():
    def augment(batch):
        if torch.rand(()) < 0.5:
            batch = batch.flip(dims=(-1,))
        return batch

    x, depth = _images()
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(4):
        for image, target in zip(x.split(4), depth.split(4), strict=True):
            image = augment(image)
            target = augment(target)  # <- here
            optimizer.zero_grad()
            F.mse_loss(model(image), target).backward()
            optimizer.step()


@fault("target-not-flipped")
def two_changes_made_for_image_and_mask():
    class Apart(Slides):
        def __init__(self):
            super().__init__()
            self.of_image, self.of_mask = Upside(0.5), Upside(0.5)

        def __getitem__(self, at):
            image = self.of_image(self.pictures[at])
            mask = self.of_mask(self.regions[at])  # <- here
            return image, mask

    segmented(Apart())


@fault("target-not-flipped")
def a_collate_that_draws_for_each_list():
    def maybe(grid):
        return torch.flip(grid, (-1,)) if random.random() < 0.5 else grid

    def collate(items):
        images = torch.stack([maybe(image) for image, _ in items])
        regions = torch.stack([maybe(region) for _, region in items])  # <- here
        return images, regions

    pairs = list(zip(*_images(), strict=True))
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        for image, mask in DataLoader(pairs, batch_size=4, collate_fn=collate):
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(model(image), mask).backward()
            optimizer.step()


@fault("target-not-flipped")
def coins_for_the_rows_of_each_batch():
    def mirrored_rows(batch, share=0.5):
        coins = torch.rand(len(batch)) < share
        batch = batch.clone()
        batch[coins] = batch[coins].flip(-1)
        return batch

    x, m = _images()
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(4):
        for rows in torch.randperm(len(x)).split(4):
            xb, mb = mirrored_rows(x[rows]), mirrored_rows(m[rows])  # <- here
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(model(xb), mb).backward()
            optimizer.step()
