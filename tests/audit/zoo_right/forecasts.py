"""Forecasts of the value after a window, and targets that are among the inputs by the task."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import epoch_of, lines, mlp
from tests.audit.registry import right
from tests.audit.zoo_faults.forecasts import WIDE, series


@right
def the_value_after_the_window():
    s = series()
    x = torch.stack([s[i : i + WIDE] for i in range(64)])
    y = torch.stack([s[i + WIDE] for i in range(64)])[:, None]
    epoch_of(mlp(WIDE, 1), F.mse_loss, x, y)


@right
def windows_that_are_given_back():
    s = series()
    x = torch.stack([s[i : i + WIDE] for i in range(64)])
    epoch_of(mlp(WIDE, WIDE), F.mse_loss, x, x)


@right
def the_same_window_moved_on_by_one():
    s = series()
    x = torch.stack([s[i : i + WIDE] for i in range(64)])
    y = torch.stack([s[i + 1 : i + WIDE + 1] for i in range(64)])
    epoch_of(mlp(WIDE, WIDE), F.mse_loss, x, y)


@right
def a_target_that_is_one_of_the_features():
    x, _ = lines(64)
    epoch_of(mlp(4, 1), F.mse_loss, x, x[:, :1])


@right
def the_last_value_taken_out_of_the_window():
    s = series()
    x = torch.stack([torch.cat([s[i : i + WIDE][:-1], torch.zeros(1)]) for i in range(64)])
    y = torch.stack([s[i + WIDE - 1] for i in range(64)])[:, None]
    epoch_of(mlp(WIDE, 1), F.mse_loss, x, y)


@right
def the_change_from_the_last_value_on():
    s = series()
    x = torch.stack([s[i : i + WIDE] for i in range(64)])
    y = torch.stack([s[i + WIDE] - s[i + WIDE - 1] for i in range(64)])[:, None]
    epoch_of(mlp(WIDE, 1), F.mse_loss, x, y)


@right
def clean_values_at_the_end_of_noisy_windows():
    clean = torch.sin(torch.arange(80) * 0.3)
    s = clean + 0.3 * torch.randn(80)
    x = torch.stack([s[i : i + WIDE] for i in range(64)])
    y = torch.stack([clean[i + WIDE - 1] for i in range(64)])[:, None]
    epoch_of(mlp(WIDE, 1), F.mse_loss, x, y)


@right
def held_out_rows_on_the_scale_of_the_training():
    x = torch.randn(80, 6) * 3
    y = x[:, :1] / 3
    train, val = x[:48], x[48:]
    mean, std = train.mean(0), train.std(0)
    train, val = (train - mean) / std, (val - mean) / std
    model = nn.Sequential(mlp(6, 1))
    epoch_of(model, F.mse_loss, train, y[:48])
    with torch.no_grad():
        print(F.mse_loss(model(val), y[48:]).item())


@right
def held_out_rows_that_were_drawn_elsewhere():
    train, val = torch.randn(48, 6), 1.5 * torch.randn(32, 6) + 0.5
    model = mlp(6, 1)
    epoch_of(model, F.mse_loss, train, train[:, :1])
    with torch.no_grad():
        print(F.mse_loss(model(val), val[:, :1]).item())
