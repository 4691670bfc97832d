"""Something of one's own in the place of what PyTorch's classes hold, for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def replaced(kind: Any, name: str, new: object) -> Iterator[None]:
    """Have a class hold `new` under a name while the body runs, whether its own is there or an inherited one."""
    own = vars(kind).get(name)
    setattr(kind, name, new)
    try:
        yield
    finally:
        if own is None:
            delattr(kind, name)
        else:
            setattr(kind, name, own)
