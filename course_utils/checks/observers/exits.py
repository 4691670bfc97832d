"""Noticing that numbers leave PyTorch all at once: as a NumPy array, as lists, or by an exchange of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from course_utils.checks.observers.replacing import replaced

EXITS = ("numpy", "tolist", "__array__", "__dlpack__")


@contextmanager
def noticed(told: Callable[[torch.Tensor], None]) -> Iterator[None]:
    """Call `told` with each tensor whose numbers leave while the body runs, whoever asks for them."""
    with ExitStack() as stack:
        for name in EXITS:
            stack.enter_context(replaced(torch.Tensor, name, _watched(getattr(torch.Tensor, name), told)))
        yield


def _watched(leave: Callable[..., Any], told: Callable[[torch.Tensor], None]) -> Callable[..., Any]:
    def call(self: torch.Tensor, *given: Any, **named: Any) -> Any:
        told(self)
        return leave(self, *given, **named)

    return call
