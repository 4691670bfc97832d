"""Images turned together with what belongs to them, and turned where nothing belongs to their places."""

import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from tests.audit.registry import right


def _images(count=16, size=8):
    masks = (torch.rand(count, 1, size, size) < 0.3).float()
    return masks + 0.3 * torch.randn_like(masks), masks


def _dense():
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 1))


class Scans(Dataset):
    """Images with their masks, and what a class of its own makes of a pair."""

    def __init__(self):
        self.images, self.masks = _images()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, at):
        return self.turned(self.images[at], self.masks[at])


def _segment(data, loss_of=F.binary_cross_entropy_with_logits):
    model = _dense()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        for image, target in DataLoader(data, batch_size=4, shuffle=True):
            optimizer.zero_grad()
            loss_of(model(image), target).backward()
            optimizer.step()


@right
def image_and_mask_flipped_together():
    class Both(Scans):
        def turned(self, image, mask):
            if random.random() < 0.5:
                image, mask = image.flip(-1), mask.flip(-1)
            if random.random() < 0.5:
                image = image.flip(-2)
                mask = mask.flip(-2)
            return image, mask

    _segment(Both())


@right
def image_and_mask_stacked_and_flipped():
    class Stacked(Dataset):
        def __init__(self):
            self.images, self.masks = _images()

        def __len__(self):
            return len(self.images)

        def __getitem__(self, at):
            both = torch.cat([self.images[at], self.masks[at]])
            if random.random() < 0.5:
                both = both.flip(-1)
            return both[:1], both[1:]

    _segment(Stacked())


@right
def noise_on_an_image_that_was_flipped_first():
    class Noisy(Dataset):
        def __init__(self):
            self.images, _ = _images()

        def __len__(self):
            return len(self.images)

        def __getitem__(self, at):
            image = self.images[at]
            if random.random() < 0.5:
                image = torch.flip(image, dims=(2,))
            return image + 0.2 * torch.randn_like(image), image

    _segment(Noisy(), F.mse_loss)


@right
def classes_of_flipped_images():
    x, _ = _images()
    y = torch.randint(2, (16,))
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        image, label = x, y
        if random.random() < 0.5:
            image = image.flip(3)
        optimizer.zero_grad()
        F.cross_entropy(model(image), label).backward()
        optimizer.step()


@right
def predictions_that_are_flipped_back():
    x, y = _images()
    model = _dense()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        for image, mask in zip(x.split(4), y.split(4), strict=True):
            mirrored = random.random() < 0.5
            scores = model(image.flip(-1) if mirrored else image)
            scores = scores.flip(-1) if mirrored else scores
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(scores, mask).backward()
            optimizer.step()


@right
def two_views_of_which_one_is_turned():
    class Views(Dataset):
        def __init__(self):
            self.images, _ = _images()

        def __len__(self):
            return len(self.images)

        def __getitem__(self, at):
            one = other = self.images[at]
            if random.random() < 0.5:
                one = one.flip(-1)
            return one, other

    encoder = _dense()
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
    for _ in range(3):
        for one, other in DataLoader(Views(), batch_size=4):
            loss = -F.cosine_similarity(encoder(one).mean(dim=(2, 3)), encoder(other).mean(dim=(2, 3))).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@right
def boxes_mirrored_by_their_numbers():
    class Boxes(Dataset):
        def __init__(self):
            self.images, _ = _images()
            self.boxes = torch.rand(16, 4)

        def __len__(self):
            return 16

        def __getitem__(self, at):
            image, box = self.images[at], self.boxes[at].clone()
            if random.random() < 0.5:
                image = image.flip(2)
                box[[0, 2]] = 1 - box[[2, 0]]
            return image, box

    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        for image, box in DataLoader(Boxes(), batch_size=4):
            optimizer.zero_grad()
            F.smooth_l1_loss(model(image), box).backward()
            optimizer.step()


@right
def a_scan_read_from_its_other_end():
    class Upright(Scans):
        def turned(self, image, mask):
            image = image.flip(1)
            brightness = 0.8 + 0.4 * random.random()
            return image * brightness, mask

    _segment(Upright())


@right
def one_function_for_images_and_masks():
    def augment(*parts):
        if random.random() < 0.5:
            parts = [part.flip(-1) for part in parts]
        return parts

    def noisy(image):
        return image + 0.1 * torch.randn_like(image)

    x, y = _images()
    model = _dense()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        for image, mask in zip(x.split(4), y.split(4), strict=True):
            image, mask = augment(noisy(image), mask)
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(model(image), mask).backward()
            optimizer.step()
