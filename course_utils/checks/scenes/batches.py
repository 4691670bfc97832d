"""Batches of inputs and targets, as training loops get them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

import torch

Batch = tuple[torch.Tensor, torch.Tensor]
Item = TypeVar("Item")


class Batches(Generic[Item]):
    """Batches for one loop after the other, as a DataLoader has them: no list, no indexing."""

    def __init__(self, batches: Sequence[Item]) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Item]:
        return iter(self._batches)

    def __len__(self) -> int:
        return len(self._batches)
