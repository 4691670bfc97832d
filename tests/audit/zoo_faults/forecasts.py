"""Forecasts whose target is within the window that the model is given, and inputs of another scale in evaluation."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from tests.audit.parts import epoch_of, mlp
from tests.audit.registry import fault

WIDE = 6


def series(count=80):
    return torch.sin(torch.arange(count) * 0.3) + 0.1 * torch.randn(count)


@fault("target-in-window")
def last_value_of_the_window():
    s = series()
    x = torch.stack([s[i : i + WIDE] for i in range(64)])
    y = torch.stack([s[i + WIDE - 1] for i in range(64)])[:, None]  # <- here
    epoch_of(mlp(WIDE, 1), F.mse_loss, x, y)


@fault("target-in-window")
def last_value_in_a_data_set():
    class Windows(Dataset):
        def __init__(self, values, size):
            self.values, self.size = values, size

        def __len__(self):
            return len(self.values) - self.size

        def __getitem__(self, index):
            end = index + self.size
            window = self.values[index:end]
            return window, self.values[end - 1 : end]  # <- here

    model, criterion = mlp(WIDE, 1), nn.SmoothL1Loss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for window, wanted in DataLoader(Windows(series(), WIDE), 16, shuffle=True, drop_last=True):
        optimizer.zero_grad()
        criterion(model(window), wanted).backward()
        optimizer.step()


@fault("target-in-window")
def windows_gathered_in_a_loop_and_scaled():
    s = series()
    windows, targets = [], []
    for start in range(64):
        windows.append(s[start : start + 6])
        targets.append(s[start + 5])  # <- here
    x, y = torch.stack(windows), torch.stack(targets)
    x = (x - s.mean()) / s.std()
    rnn, head = nn.GRU(1, 8, batch_first=True), nn.Linear(8, 1)
    optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()], lr=0.01)
    for rows in torch.randperm(64).split(16):
        out = head(rnn(x[rows][..., None])[0].mean(1)).squeeze(1)
        optimizer.zero_grad()
        F.mse_loss(out, y[rows]).backward()
        optimizer.step()


@fault("scaled-apart")
def other_rows_three_times_as_wide():
    x = torch.randn(80, 6) * 3
    y = x[:, :1] / 3
    train, val = x[:48], x[48:]
    mean, std = train.mean(0), train.std(0)
    train = (train - mean) / std  # <- here
    model = mlp(6, 1)
    epoch_of(model, F.mse_loss, train, y[:48])
    with torch.no_grad():
        print(F.mse_loss(model(val), y[48:]).item())


@fault("noise-copied")
def random_points_with_noise_on_them():
    clean, model = torch.rand(48, 6), mlp(6, 6)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        noisy = clean + 0.3 * torch.randn_like(clean)
        optimizer.zero_grad()
        F.mse_loss(model(noisy), noisy).backward()  # <- here
        optimizer.step()
