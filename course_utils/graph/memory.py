"""Which memory a tensor occupies, for every kind of tensor."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import cache
from typing import Any

import torch


def memory_of(tensor: torch.Tensor) -> tuple[Hashable, int]:
    """Return a key that tensors over the same memory share, and the bytes of that memory.

    A view has the key and the bytes of its whole base. Tensors made of several (sparse ones, subclasses) have the
    keys and the bytes of all their parts. Where nothing can be told the tensor counts as its own, with 0 bytes.
    """
    try:
        storage = tensor.untyped_storage()
    except (RuntimeError, NotImplementedError):
        parts = [memory_of(part) for part in parts_of(tensor)]
        return (tuple(key for key, _ in parts), sum(size for _, size in parts)) if parts else (id(tensor), 0)
    try:
        address = storage.data_ptr()
    except RuntimeError:  # fake tensors have none
        address = 0
    return address or -storage._cdata, storage.nbytes()


def shape_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """Return a tensor's shape, with -1 for the ragged dimensions of a nested tensor."""
    try:
        return tuple(tensor.shape)
    except RuntimeError:
        return (tensor.size(0), *[-1] * (tensor.dim() - 1))


@cache
def dtype_name(dtype: torch.dtype) -> str:
    """Return "float32" for torch.float32."""
    return str(dtype).removeprefix("torch.")


def parts_of(tensor: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors that a tensor without a storage of its own is made of."""
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        yield torch._C._functorch.get_unwrapped(tensor)
    elif hasattr(tensor, "__tensor_flatten__"):
        yield from (getattr(tensor, name) for name in tensor.__tensor_flatten__()[0])
    elif tensor.layout is torch.sparse_coo:
        yield from (tensor._indices(), tensor._values())
    elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        yield from (tensor.crow_indices(), tensor.col_indices(), tensor.values())
    elif tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        yield from (tensor.ccol_indices(), tensor.row_indices(), tensor.values())
