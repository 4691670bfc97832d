"""Images and what tells of the same places, turned by one draw, or views that need not fit."""

import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from tests.audit.registry import right
from tests.audit.zoo_faults.drawn import Slides, Upside, segmented


@right
def one_seed_set_before_each_call():
    class Seeded(Slides):
        def __getitem__(self, at):
            state = random.getrandbits(30)
            torch.manual_seed(state)
            picture = self.change(self.pictures[at])
            torch.manual_seed(state)
            region = self.change(self.regions[at])
            return picture, region

    segmented(Seeded(Upside(0.5)))


@right
def one_random_number_for_both():
    class Once(Slides):
        def __getitem__(self, at):
            picture, region = self.pictures[at], self.regions[at]
            lucky = random.random()
            if lucky < 0.5:
                picture = torch.flip(picture, [-1])
            if lucky < 0.5:
                region = torch.flip(region, [-1])
            turns = random.randint(0, 3)
            return torch.rot90(picture, turns, (-2, -1)), torch.rot90(region, turns, (-2, -1))

    segmented(Once())


@right
def both_in_one_call():
    class Joint:
        def __call__(self, image, mask):
            if random.random() < 0.5:
                image, mask = image.flip(-1), mask.flip(-1)
            return image, mask

    class Jointly(Slides):
        def __getitem__(self, at):
            return self.change(self.pictures[at], self.regions[at])

    segmented(Jointly(Joint()))


@right
def both_stacked_for_one_call():
    class Stacked(Slides):
        def __getitem__(self, at):
            pair = self.change(torch.cat([self.pictures[at], self.regions[at]]))
            return pair[:1], pair[1:]

    segmented(Stacked(Upside(0.5)))


@right
def a_change_that_keeps_its_draw():
    class Kept:
        def draw(self):
            self.on = random.random() < 0.5

        def __call__(self, grid):
            return grid.flip(-1) if self.on else grid

    class Drawn(Slides):
        def __getitem__(self, at):
            self.change.draw()
            image = self.change(self.pictures[at])
            mask = self.change(self.regions[at])
            return image, mask

    segmented(Drawn(Kept()))


@right
def parameters_that_are_handed_to_both():
    def params():
        return random.random() < 0.5, random.randint(0, 3)

    def apply(grid, mirror, turns):
        grid = grid.flip(-1) if mirror else grid
        return torch.rot90(grid, turns, (-2, -1))

    class Shared(Slides):
        def __getitem__(self, at):
            mirror, turns = params()
            return apply(self.pictures[at], mirror, turns), apply(self.regions[at], mirror, turns)

    segmented(Shared())


@right
def two_views_of_one_image():
    class Views(Slides):
        def __getitem__(self, at):
            first = self.pictures[at].clone()
            second = self.pictures[at].clone()
            first = self.change(first)
            second = self.change(second)
            return first, second

    encoder = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 2, 1))
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
    for _ in range(3):
        for one, other in DataLoader(Views(Upside(0.5)), batch_size=4):
            a, b = (F.normalize(encoder(it).mean((2, 3)), dim=1) for it in (one, other))
            optimizer.zero_grad()
            F.cross_entropy(a @ b.t() / 0.5, torch.arange(len(a))).backward()
            optimizer.step()


@right
def noise_drawn_for_each_of_image_and_mask():
    class Noisy(Slides):
        def shaken(self, grid):
            return grid + 0.01 * torch.randn_like(grid)

        def __getitem__(self, at):
            image, mask = self.shaken(self.pictures[at]), self.shaken(self.regions[at])
            if random.random() < 0.5:
                image, mask = image.flip(-1), mask.flip(-1)
            return image, mask

    segmented(Noisy(), F.mse_loss)
