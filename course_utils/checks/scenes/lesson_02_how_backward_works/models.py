"""Tiny models with a batch each, made from a seed alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.checks.scenes.numbers import numbers, seeded

CLASSES = 3


@dataclass(frozen=True)
class Trial:
    """A model and the batch that it is tried on."""

    model: nn.Module
    inputs: torch.Tensor
    targets: torch.Tensor

    def loss(self) -> torch.Tensor:
        """Run the model forward. Each call records a new graph."""
        return cross_entropy(self.model(self.inputs), self.targets)


class Last(nn.Module):
    """What a recurrent layer says after the last step."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        outputs: torch.Tensor = self.layer(inputs)[0]
        return outputs[:, -1]


class Mean(nn.Module):
    """The mean over a sequence."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs.mean(1)


def mlp(seed: int) -> Trial:
    """Return three layers with two kinds of nonlinearity."""
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 4), nn.ReLU(), nn.Linear(4, CLASSES))
    return _trial(model, seed, 6, 5)


def conv_net(seed: int) -> Trial:
    """Return a convolution with batch norm (in training mode) and pooling, and a linear layer."""
    # Batch norm takes a bias away again. Its gradient would be rounding noise, which no two machines share.
    convolution = nn.Conv2d(2, 4, 3, bias=False)
    features = nn.Sequential(convolution, nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    return _trial(nn.Sequential(features, nn.Linear(16, CLASSES)), seed, 5, 2, 6, 6)


def lstm(seed: int) -> Trial:
    """Return two LSTM layers over four steps, and a linear layer on what they say last."""
    model = nn.Sequential(Last(nn.LSTM(3, 5, 2, batch_first=True)), nn.Linear(5, CLASSES))
    return _trial(model, seed, 2, 4, 3)


def transformer(seed: int) -> Trial:
    """Return one Transformer layer without dropout, and a linear layer on the mean of its outputs."""
    layer = nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=12, dropout=0.0, batch_first=True)
    return _trial(nn.Sequential(layer, Mean(), nn.Linear(8, CLASSES)), seed, 2, 3, 8)


def _trial(model: nn.Module, seed: int, *shape: int) -> Trial:
    inputs = numbers(seed + 1, *shape)
    targets = torch.arange(shape[0]) % CLASSES
    return Trial(seeded(model, seed), inputs, targets)
