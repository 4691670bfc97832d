"""Leaves, and numbers for them."""

from __future__ import annotations

import torch


def numbers(seed: int, *shape: int) -> torch.Tensor:
    """Return numbers between 0.5 and 1.5."""
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) + 0.5


def leaf(seed: int, *shape: int) -> torch.Tensor:
    """Return a leaf that requires grad."""
    return numbers(seed, *shape).requires_grad_()
