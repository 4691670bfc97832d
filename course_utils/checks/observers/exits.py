"""Noticing that numbers leave PyTorch all at once: as a NumPy array, as lists, or by an exchange of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

EXITS = ("numpy", "tolist", "__array__", "__dlpack__")


@contextmanager
def noticed(told: Callable[[torch.Tensor], None]) -> Iterator[None]:
    """Call `told` with each tensor whose numbers leave while the body runs, whoever asks for them."""
    kind: Any = torch.Tensor
    own = {name: vars(kind).get(name) for name in EXITS}
    for name in EXITS:
        setattr(kind, name, _watched(getattr(kind, name), told))
    try:
        yield
    finally:
        for name, before in own.items():
            if before is None:  # it is inherited
                delattr(kind, name)
            else:
                setattr(kind, name, before)


def _watched(leave: Callable[..., Any], told: Callable[[torch.Tensor], None]) -> Callable[..., Any]:
    def call(self: torch.Tensor, *given: Any, **named: Any) -> Any:
        told(self)
        return leave(self, *given, **named)

    return call
