"""Code that makes PyTorch raise or warn, for real, each with the card that it must get.

A function is a case. Comments at the end of its lines say which places a card must show: `# needed here`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CASES: dict[str, Case] = {}


@dataclass(frozen=True)
class Case:
    """One piece of code, the code of its card, whether its cause is proved, and words that its card must have."""

    run: Callable[[], Any]
    code: str
    certain: bool
    says: tuple[str, ...]
    warns: bool


def case(code: str, *says: str, certain: bool = True, warns: bool = False) -> Callable[[Any], Any]:
    def add(run: Callable[[], Any]) -> Callable[[], Any]:
        name = f"{run.__module__.rpartition('.')[2]}.{run.__name__}"
        assert name not in CASES
        CASES[name] = Case(run, code, certain, says, warns)
        return run

    return add
