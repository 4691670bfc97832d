"""Batches of inputs and targets, as training loops get them."""

from __future__ import annotations

from collections.abc import Iterator

import torch

Batch = tuple[torch.Tensor, torch.Tensor]


class Batches:
    """Batches for one loop after the other, as a DataLoader has them: no list, no indexing."""

    def __init__(self, batches: list[Batch]) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._batches)

    def __len__(self) -> int:
        return len(self._batches)
