"""What a check knows of tensors while they live: of the latest few, by identity."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any, Generic, TypeVar

import torch

T = TypeVar("T")


class Followed(Generic[T]):
    """A fact for each of some tensors. It keeps none of them alive, and forgets the oldest where there are too many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[int, tuple[weakref.ref[torch.Tensor], T]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def keep(self, tensor: torch.Tensor, fact: T) -> None:
        """Note a fact of a tensor, in place of what was known of it."""
        self._known[id(tensor)] = weakref.ref(tensor), fact
        if len(self._known) > self._most:
            self._known.popitem(last=False)

    def of(self, thing: Any) -> T | None:
        """Return what is known of a thing; None of what is no tensor, or of another one that has its place by now."""
        known = self._known.get(id(thing))
        return known[1] if known is not None and known[0]() is thing else None

    def forget(self, thing: Any) -> None:
        """Drop what is known of a thing, if anything is."""
        self._known.pop(id(thing), None)

    def facts(self) -> list[T]:
        """Return what is known, of tensors that have gone, too."""
        return [fact for _, fact in self._known.values()]

    def clear(self) -> None:
        self._known.clear()
