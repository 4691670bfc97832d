"""A trunk that several losses share."""

from __future__ import annotations

import torch
from torch import nn


class Trunk(nn.Module):
    """Two layers and a way past the second, so that gradients meet on their way."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h: torch.Tensor = self.first(x).tanh()
        more: torch.Tensor = self.second(h).sigmoid()
        return h + more
