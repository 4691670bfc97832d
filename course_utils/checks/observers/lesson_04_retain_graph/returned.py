"""The tensors in what an answer returned."""

from __future__ import annotations

import torch


def tensors_in(value: object, depth: int = 0) -> list[torch.Tensor]:
    if type(value) is torch.Tensor:
        return [value]
    if type(value) in (list, tuple) and depth < 4:
        return [tensor for item in value for tensor in tensors_in(item, depth + 1)]  # type: ignore[attr-defined]
    return []
