"""Reading what an answer returned at once, while it is still observed.

A mapping, sequence or number of the learner's own class may compute its parts when they are asked for. Asked for after
the observers have ended, it would compute unseen.
"""

from __future__ import annotations

import decimal
import functools
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import torch

MAX_DEPTH = 20
MAX_ITEMS = 100_000


def realising(answer: Any) -> Any:
    """Return a function that calls an answer, and reads what it returns before its own caller goes on."""
    if not callable(answer) or isinstance(answer, type):
        return answer

    @functools.wraps(answer, assigned=(), updated=())
    def run(*given: Any, **named: Any) -> Any:
        return realised(answer(*given, **named))

    return run


def realised(value: Any, depth: int = 0) -> Any:
    """Return the same object, or the plain list, dict or number that it stands for where its class is another."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str, torch.Tensor) or depth > MAX_DEPTH:
        return value
    if isinstance(value, torch.Tensor | type | int | str | bytes | bytearray | memoryview):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real | decimal.Decimal):
        return float(value)
    if isinstance(value, dict | Mapping):
        items = dict(dict.items(value) if isinstance(value, dict) else value)
        read = {key: realised(item, depth + 1) for key, item in items.items()}
        same = isinstance(value, dict) and all(read[key] is item for key, item in items.items())
        return value if same else read
    if isinstance(value, list | tuple | Sequence):
        parts = _parts(value)
        inside = [realised(item, depth + 1) for item in parts]
        same = isinstance(value, list | tuple) and all(new is old for new, old in zip(inside, parts, strict=True))
        return value if same else (tuple(inside) if kind is tuple else inside)
    return value


def _parts(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [*list.__iter__(value)]
    if isinstance(value, tuple):
        return [*tuple.__iter__(value)]
    return [value[number] for number in range(min(len(value), MAX_ITEMS))]
