"""Bytes, scales, masks and mixtures as they should be."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset

from tests.audit.parts import blobs, mlp, pixels
from tests.audit.registry import right
from tests.audit.selecting import Scaler


def _network(size=6):
    return nn.Sequential(nn.Flatten(), nn.Linear(size * size, 16), nn.Tanh(), nn.Linear(16, 3))


@right
def bytes_turned_into_numbers_first():
    images, labels = pixels()
    model = _network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(2):
        for rows in torch.randperm(32).split(8):
            negative = 255 - images[rows]
            x = (images[rows].float() - 128) / 128 + 0.0 * negative / 255
            optimizer.zero_grad()
            F.cross_entropy(model(x), labels[rows]).backward()
            optimizer.step()


@right
def brighter_numbers_in_a_data_set():
    class Brighter(Dataset):
        def __init__(self):
            rng = np.random.default_rng(0)
            self.images = rng.integers(0, 256, (32, 6, 6), dtype=np.uint8)
            self.labels = rng.integers(0, 3, 32)

        def __len__(self):
            return 32

        def __getitem__(self, row):
            image = self.images[row].astype(np.int32)
            image = np.clip(image + 40, 0, 255)
            return torch.from_numpy(image).float() / 255, int(self.labels[row])

    model = _network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(2):
        for x, y in DataLoader(Brighter(), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


@right
def labels_in_bytes_moved_by_one():
    x, _ = blobs(32)
    labels = torch.randint(0, 3, (32,), dtype=torch.uint8)
    model = mlp(out=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for rows in torch.randperm(32).split(8):
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), (labels[rows] + 1).long()).backward()
        optimizer.step()


@right
def one_scaler_for_inputs_and_one_for_targets():
    x, y = torch.randn(48, 4).numpy(), torch.randn(48, 1).numpy()
    x_train, x_test, y_train, y_test = x[:32], x[32:], y[:32], y[32:]
    scaler, target_scaler = Scaler(), Scaler()
    x_train, x_test = scaler.fit_transform(x_train), scaler.transform(x_test)
    y_train, y_test = target_scaler.fit_transform(y_train), target_scaler.transform(y_test)
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(4):
        optimizer.zero_grad()
        F.mse_loss(model(torch.tensor(x_train)), torch.tensor(y_train)).backward()
        optimizer.step()
        with torch.no_grad():
            print(F.mse_loss(model(torch.tensor(x_test)), torch.tensor(y_test)).item())


@right
def masks_resized_by_the_nearest():
    images, masks = torch.rand(16, 3, 12, 12), torch.randint(5, (16, 12, 12))
    model = nn.Conv2d(3, 5, 3, padding=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for rows in torch.randperm(16).split(4):
        x = F.interpolate(images[rows], size=(8, 8), mode="bilinear", align_corners=False)
        small = F.interpolate(masks[rows][:, None].float(), size=(8, 8), mode="nearest")[:, 0].long()
        optimizer.zero_grad()
        F.cross_entropy(model(x), small).backward()
        optimizer.step()


@right
def a_soft_mask_and_one_cut_at_a_half():
    images, masks = torch.rand(16, 3, 12, 12), (torch.rand(16, 1, 12, 12) > 0.5).float()
    model = nn.Conv2d(3, 1, 3, padding=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for rows in torch.randperm(16).split(4):
        x = F.interpolate(images[rows], size=(8, 8), mode="bilinear")
        soft = F.interpolate(masks[rows], size=(8, 8), mode="bilinear")
        hard = (soft > 0.5).long().float()
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(model(x), 0.5 * (soft + hard)).backward()
        optimizer.step()


@right
def labels_where_something_is_hidden():
    model = nn.Sequential(nn.Embedding(12, 8), nn.Linear(8, 12))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(4):
        tokens = torch.randint(10, (4, 6))
        mask = torch.rand(tokens.shape) < 0.3
        padding = torch.arange(6) >= torch.randint(4, 7, (4, 1))
        labels = tokens.masked_fill(~mask, -100).masked_fill(padding, -100)
        inputs = tokens.masked_fill(mask, 11).masked_fill(padding, 10)
        optimizer.zero_grad()
        F.cross_entropy(model(inputs).flatten(0, 1), labels.flatten()).backward()
        optimizer.step()


@right
def inputs_and_targets_mixed():
    x, y = blobs(32)
    model, criterion = mlp(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for rows in torch.randperm(32).split(8):
        inputs, targets = x[rows], y[rows]
        lam = torch.distributions.Beta(0.4, 0.4).sample()
        order = torch.randperm(len(inputs))
        scores = model(lam * inputs + (1 - lam) * inputs[order])
        loss = lam * criterion(scores, targets) + (1 - lam) * criterion(scores, targets[order])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def mixed_by_a_function_that_hands_the_order_on():
    x, y = blobs(32)

    def mixup(x, y):
        lam, index = float(torch.rand(())), torch.randperm(len(x))
        return lam * x + (1 - lam) * x[index], y, y[index], lam

    def mixup_loss(scores, y_a, y_b, lam):
        return lam * F.cross_entropy(scores, y_a) + (1 - lam) * F.cross_entropy(scores, y_b)

    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for rows in torch.randperm(32).split(8):
        mixed, y_a, y_b, lam = mixup(x[rows], y[rows])
        optimizer.zero_grad()
        mixup_loss(model(mixed), y_a, y_b, lam).backward()
        optimizer.step()


@right
def one_hot_targets_mixed_with_the_inputs():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for rows in torch.randperm(32).split(8):
        inputs, targets = x[rows], F.one_hot(y[rows], 3).float()
        lam, order = torch.rand(()), torch.randperm(8)
        inputs, targets = lam * inputs + (1 - lam) * inputs[order], lam * targets + (1 - lam) * targets[order]
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


@right
def all_rows_of_a_small_part():
    x, y = blobs(48)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = DataLoader(TensorDataset(x[:32], y[:32]), batch_size=16, shuffle=True, drop_last=True)
    held_out = DataLoader(TensorDataset(x[36:], y[36:]), batch_size=16)
    for _ in range(3):
        for inputs, targets in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        with torch.no_grad():
            print(sum((model(inputs).argmax(1) == targets).sum().item() for inputs, targets in held_out))


@right
def pixels_divided_for_both_parts():
    images, labels = pixels(48)
    train, test = images[:32].float() / 255, images[32:].float() / 255
    model = _network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(2):
        for rows in torch.randperm(32).split(8):
            optimizer.zero_grad()
            F.cross_entropy(model((train[rows] - 0.1307) / 0.3081), labels[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            print(model((test - 0.1307) / 0.3081).argmax(1).float().mean().item())


@right
def scores_of_masks_resized_and_picked():
    images, masks = torch.rand(16, 3, 12, 12), torch.randint(5, (16, 12, 12))
    model = nn.Conv2d(3, 5, 3, padding=1, stride=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for rows in torch.randperm(16).split(4):
        mask_scores = F.interpolate(model(images[rows]), size=(12, 12), mode="bilinear")
        loss = F.cross_entropy(mask_scores, masks[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        large = F.interpolate(mask_scores.detach(), scale_factor=2, mode="bilinear").argmax(dim=1).long()
        print(large.float().mean().item())
