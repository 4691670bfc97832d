"""Numbers made from a seed alone. None comes from the global random state."""

from __future__ import annotations

import torch
from torch import nn


def numbers(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return numbers with sizes from 0.4 to 1.6 and random signs: nothing near zero."""
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.rand(shape, generator=generator, dtype=torch.float64) * 1.2 + 0.4
    signs = torch.randint(0, 2, shape, generator=generator) * 2 - 1
    return (sizes * signs).to(dtype)


def by_columns(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy of a matrix, or of a batch of them, with its columns one behind the other: not contiguous.

    What has fewer dimensions is returned as it is.
    """
    return tensor.mT.contiguous().mT if tensor.dim() > 1 else tensor


def seeded(model: nn.Module, seed: int, scale: float = 0.5) -> nn.Module:
    """Overwrite all parameters of a model, each from a seed of its own."""
    with torch.no_grad():
        for offset, parameter in enumerate(model.parameters()):
            parameter.copy_(scale * numbers(1000 * seed + offset, *parameter.shape, dtype=parameter.dtype))
    return model
