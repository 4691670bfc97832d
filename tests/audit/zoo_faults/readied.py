"""Inputs and labels that are spoiled on their way to the model."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset

from tests.audit.parts import blobs, mlp, pixels
from tests.audit.registry import fault
from tests.audit.selecting import Scaler


def _network(size=6):
    return nn.Sequential(nn.Flatten(), nn.Linear(size * size, 16), nn.Tanh(), nn.Linear(16, 3))


@fault("bytes-wrap")
def a_mean_taken_from_bytes():
    images, labels = pixels()
    model = _network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(2):
        for rows in torch.randperm(32).split(8):
            x = (images[rows] - 128) / 128  # <- here
            optimizer.zero_grad()
            F.cross_entropy(model(x), labels[rows]).backward()
            optimizer.step()


@fault("bytes-wrap")
def brighter_bytes_in_a_data_set():
    class Brighter(Dataset):
        def __init__(self):
            rng = np.random.default_rng(0)
            self.images = rng.integers(0, 256, (32, 6, 6), dtype=np.uint8)
            self.labels = rng.integers(0, 3, 32)

        def __len__(self):
            return 32

        def __getitem__(self, row):
            image = self.images[row].copy()
            image += 40  # <- here
            return torch.from_numpy(image).float() / 255, int(self.labels[row])

    model = _network()
    loader = DataLoader(Brighter(), batch_size=8, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


@fault("bytes-wrap")
def bytes_given_to_a_function():
    def brighter(image):
        return image + 60  # <- here

    images, labels = pixels()
    model = _network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(2):
        for rows in torch.randperm(32).split(8):
            optimizer.zero_grad()
            F.cross_entropy(model(brighter(images[rows]).float() / 255), labels[rows]).backward()
            optimizer.step()


def _fit(model, x, y, ask):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(4):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            print(model(ask).argmax(1).float().mean().item())


@fault("fitted-again")
def a_scaler_fitted_to_the_test_part():
    x, y = blobs(48)
    x_train, x_test, y_train = x[:32].numpy(), x[32:].numpy(), y[:32]
    scaler = Scaler()
    x_train = scaler.fit_transform(x_train)
    x_test = scaler.fit_transform(x_test)  # <- here
    _fit(mlp(), torch.tensor(x_train), y_train, torch.tensor(x_test))


@fault("fitted-again")
def each_part_by_its_own_mean():
    x, y = blobs(48)
    train_x, val_x = x[:32], x[32:]
    train_x = (train_x - train_x.mean(0)) / train_x.std(0)
    val_x = (val_x - val_x.mean(0)) / val_x.std(0)  # <- here
    _fit(mlp(), train_x, y[:32], val_x)


@fault("labels-blended")
def classes_resized_as_an_image():
    images, masks = torch.rand(16, 3, 12, 12), torch.randint(5, (16, 12, 12))
    model = nn.Conv2d(3, 5, 3, padding=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for rows in torch.randperm(16).split(4):
        x = F.interpolate(images[rows], size=(8, 8), mode="bilinear", align_corners=False)
        small = F.interpolate(masks[rows][:, None].float(), size=(8, 8), mode="bilinear")  # <- here
        optimizer.zero_grad()
        F.cross_entropy(model(x), small[:, 0].long()).backward()
        optimizer.step()


@fault("labels-blended")
def one_size_for_image_and_label():
    images, labels = torch.rand(16, 3, 12, 12), torch.randint(4, (16, 12, 12))

    def resized(image, label):
        image = F.interpolate(image[None], scale_factor=0.5, mode="bilinear")[0]
        label = F.interpolate(label[None, None].float(), scale_factor=0.5, mode="bicubic")  # <- here
        label = label.round().long()[0, 0]
        return image, label.clamp(0, 3)

    model = nn.Conv2d(3, 4, 3, padding=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for rows in torch.randperm(16).split(4):
        pairs = [resized(images[row], labels[row]) for row in rows]
        x, y = (torch.stack(part) for part in zip(*pairs, strict=True))
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def _reader(words=12, width=8):
    return nn.Sequential(nn.Embedding(words, width), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, words))


@fault("unmasked-asked")
def labels_where_nothing_is_hidden():
    model = _reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(4):
        tokens = torch.randint(10, (4, 6))
        hidden = torch.rand(tokens.shape) < 0.3
        labels = tokens.clone()
        labels[hidden] = -100  # <- here
        scores = model(tokens.masked_fill(hidden, 11))
        optimizer.zero_grad()
        F.cross_entropy(scores.flatten(0, 1), labels.flatten(), ignore_index=-100).backward()
        optimizer.step()


@fault("unmasked-asked")
def labels_by_where():
    mask_id = 11

    def corrupted(tokens):
        chosen = torch.bernoulli(torch.full(tokens.shape, 0.3)).bool()
        labels = torch.where(chosen, -100, tokens)  # <- here
        inputs = tokens.clone()
        inputs[chosen] = mask_id
        return inputs, labels

    model = _reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(4):
        inputs, labels = corrupted(torch.randint(10, (4, 6)))
        optimizer.zero_grad()
        F.cross_entropy(model(inputs).flatten(0, 1), labels.flatten()).backward()
        optimizer.step()


@fault("mixed-apart")
def targets_that_are_not_mixed():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for rows in torch.randperm(32).split(8):
        inputs, targets = x[rows], y[rows]
        share = torch.rand(()).item()
        order = torch.randperm(len(inputs))
        inputs = share * inputs + (1 - share) * inputs[order]  # <- here
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


@fault("mixed-apart")
def the_share_of_the_other_row():
    x, y = blobs(32)
    model, criterion = mlp(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for rows in torch.randperm(32).split(8):
        inputs, targets = x[rows], y[rows]
        lam = torch.distributions.Beta(0.4, 0.4).sample()
        order = torch.randperm(len(inputs))
        scores = model(lam * inputs + (1 - lam) * inputs[order])
        loss = lam * criterion(scores, targets[order]) + (1 - lam) * criterion(scores, targets)  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("loader-empty")
def fewer_rows_than_a_batch():
    x, y = blobs(48)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = DataLoader(TensorDataset(x[:32], y[:32]), batch_size=16, shuffle=True, drop_last=True)
    held_out = DataLoader(TensorDataset(x[36:], y[36:]), batch_size=16, drop_last=True)  # <- here
    for _ in range(3):
        for inputs, targets in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        with torch.no_grad():
            print(sum((model(inputs).argmax(1) == targets).sum().item() for inputs, targets in held_out))


@fault("pixels-scaled", "dead-units")
def pixels_divided_twice():
    images, labels = pixels()
    images = images.float() / 255
    model = _network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(2):
        for rows in torch.randperm(32).split(8):
            optimizer.zero_grad()
            F.cross_entropy(model(images[rows] / 255.0), labels[rows]).backward()  # <- here
            optimizer.step()


@fault("pixels-scaled", "dead-units", "zero-gradient", "rate-far-off")
def a_known_mean_from_bytes():
    images, labels = pixels()
    mean, std = 0.1307, 0.3081  # <- here
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Tanh(), nn.Flatten(), nn.Linear(64, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        for rows in torch.randperm(32).split(8):
            x = (images[rows].float() - mean) / std
            optimizer.zero_grad()
            F.cross_entropy(model(x), labels[rows]).backward()
            optimizer.step()
