"""What is still alive: memory and graphs, watched without keeping either."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode


class Memory:
    """The memory of some tensors, each storage once."""

    def __init__(self) -> None:
        self.at_most = 0  # bytes alive when last counted, and all that was added since
        self._storages: dict[int, tuple[StorageWeakRef, int]] = {}

    def add(self, tensor: torch.Tensor) -> None:
        """Watch the memory of a tensor: all of its base, if it is a view. One that is known has its present size."""
        storage = tensor.untyped_storage()
        known, size = self._storages.get(storage._cdata), storage.nbytes()
        if known is None or _gone(known[0]):  # an address may be used again
            self._storages[storage._cdata] = StorageWeakRef(storage), size
            self.at_most += size
        elif size != known[1]:  # `resize_` was there, or an operation with `out=`
            self._storages[storage._cdata] = known[0], size
            self.at_most += size - known[1]

    def __contains__(self, tensor: torch.Tensor) -> bool:
        known = self._storages.get(tensor.untyped_storage()._cdata)
        return known is not None and not _gone(known[0])

    def alive(self) -> int:
        """Return how many of the watched bytes are still held by anything."""
        self._storages = {key: held for key, held in self._storages.items() if not _gone(held[0])}
        self.at_most = sum(size for _, size in self._storages.values())
        return self.at_most


def _gone(storage: StorageWeakRef) -> bool:
    return bool(storage.expired())


class OwnedMemory:
    """The memory of some tensors, each storage once, by owner.

    `alive` holds the bytes of each owner now. It changes at the moment when a storage is freed, so that looking
    after each of many operations costs nothing. Python's object for a storage lives as long as the memory, also
    while only the graph holds it: that is why weak references to it tell.
    """

    def __init__(self) -> None:
        self.alive: dict[str, int] = {}
        self._held: dict[int, tuple[weakref.ref[torch.UntypedStorage], str, int]] = {}

    def __contains__(self, storage: torch.UntypedStorage) -> bool:
        return storage._cdata in self._held

    def add(self, storage: torch.UntypedStorage, owner: str) -> None:
        """Watch a storage. One that is known keeps its owner and gets its present size."""
        key, size = storage._cdata, storage.nbytes()
        if key in self._held:
            reference, owner, before = self._held[key]
        else:
            reference, before = weakref.ref(storage, partial(self._free, key)), 0
        self._held[key] = reference, owner, size
        self.alive[owner] = self.alive.get(owner, 0) + size - before

    def forget(self) -> None:
        """Stop watching; `alive` stays as it is."""
        self._held.clear()

    def _free(self, key: int, _: object) -> None:
        _, owner, size = self._held.pop(key)
        self.alive[owner] -= size


class Graphs:
    """Some graphs, each known by the nodes that made its results. Whoever holds one of these holds the graph."""

    def __init__(self) -> None:
        self._tokens: list[list[weakref.ref[_Token]]] = []

    def add(self, *results: torch.Tensor) -> None:
        """Watch the graph of one tensor, or of the several results of one run."""
        self._watch([tensor.grad_fn for tensor in results if tensor.grad_fn is not None])

    def add_node(self, node: Any) -> None:
        """Watch the graph below a node."""
        self._watch([node])

    def add_own(self, nodes: Iterable[Any]) -> int:
        """Watch nodes one by one, and return how many: those that no other graph has that is watched."""
        tokens = [node.metadata.setdefault(_Token, _Token()) for node in nodes if _Token not in node.metadata]
        self._tokens += [[weakref.ref(token)] for token in tokens]
        return len(tokens)

    def _watch(self, nodes: list[Any]) -> None:
        """Remember what the nodes carry: they allow no weak reference themselves. Others may watch them, too."""
        tokens = [node.metadata.setdefault(_Token, _Token()) for node in nodes]
        known = {id(reference()) for graph in self._tokens for reference in graph}
        new = [weakref.ref(token) for token in tokens if id(token) not in known]
        if new:
            self._tokens.append(new)

    def alive(self) -> int:
        """Return how many of the watched graphs are still held by anything."""
        return sum(any(token() is not None for token in graph) for graph in self._tokens)


class _Token:
    """Lives as long as the node that carries it."""


class PeakMemory(TorchDispatchMode):
    """The most bytes that tensors made in the body held at one time. Backward passes and recomputing count."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.peak = 0
        self._memory = Memory()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if (whole := in_parts(self, function, args, kwargs)) is not NotImplemented:
            return whole
        result = function(*args, **(kwargs or {}))
        given = {tensor.untyped_storage()._cdata for tensor in tensors_in(args)}
        for tensor in tensors_in((result,)):
            # A view of something given was not made here. What was may have grown.
            if tensor.untyped_storage()._cdata not in given or tensor in self._memory:
                self._memory.add(tensor)
        if self._memory.at_most > self.peak:  # counting takes time
            self.peak = max(self.peak, self._memory.alive())
        return result

    def alive(self) -> int:
        """Return how many bytes made in the body are held now."""
        return self._memory.alive()


def in_parts(mode: TorchDispatchMode, function: Any, args: Any, kwargs: Any) -> Any:
    """Run an operation in the parts that a mode meets outside of inference mode; NotImplemented where it has none.

    Under `torch.inference_mode()` a mode is given `linear` and `matmul` whole: what they are made of passes it by.
    """
    if not torch.is_inference_mode_enabled() or not function._can_decompose():
        return NotImplemented
    with mode:
        return function.decompose(*args, **(kwargs or {}))


def tensors_in(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """Yield the tensors among an operation's arguments or results, also those in lists."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):  # asked at each operation, and a union takes longer
            yield from tensors_in(value)
