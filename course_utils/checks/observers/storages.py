"""Following numbers by where they lie in memory."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.multiprocessing.reductions import StorageWeakRef


class Storages:
    """Memories of tensors that are followed, as long as they live: views of one are one."""

    def __init__(self) -> None:
        self._followed: dict[int, StorageWeakRef] = {}

    def add(self, tensor: torch.Tensor) -> bool:
        """Follow a tensor's numbers from now on, and say whether they can be followed."""
        storage = storage_of(tensor)
        if storage is not None:
            self._followed[storage._cdata] = StorageWeakRef(storage)
        return storage is not None

    def add_all(self, tensors: Iterable[torch.Tensor]) -> None:
        """Follow the numbers of several tensors, as far as they can be followed."""
        for tensor in tensors:
            self.add(tensor)

    def __contains__(self, tensor: torch.Tensor) -> bool:
        storage = storage_of(tensor)
        reference = None if storage is None else self._followed.get(storage._cdata)
        return reference is not None and not reference.expired()

    def clear(self) -> None:
        """Follow none any more."""
        self._followed.clear()


def storage_of(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    """Return a tensor's memory; None for one without numbers of its own, as a sparse one or one of `vmap`."""
    try:
        return tensor.untyped_storage()
    except RuntimeError:
        return None
