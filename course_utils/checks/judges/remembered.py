"""Right results that several findings ask for, computed once for each case."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeAlias, TypeVar

import torch

from course_utils.checks.data import Case, encode

Named: TypeAlias = dict[str, torch.Tensor]

_MOST = 64

T = TypeVar("T")


def remembered(oracle: Callable[[Case], T]) -> Callable[[Case], T]:
    """Let a function of a case compute once for each case. Nobody may change what it returns."""
    known: dict[bytes, T] = {}

    @wraps(oracle)
    def asked(case: Case) -> T:
        key = encode({"name": case.name, "given": case.given})
        if key not in known:
            if len(known) >= _MOST:
                known.clear()
            known[key] = oracle(case)
        return known[key]

    return asked
