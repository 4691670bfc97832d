"""What is wrong with something, found by repairing it: the repair that helps is the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

_Thing = TypeVar("_Thing")


def first_that_helps(
    make: Callable[[], _Thing], repairs: Mapping[str, Callable[[_Thing], _Thing]], works: Callable[[_Thing], bool]
) -> str:
    """Return the letter of the first repair after which something works; each is tried on a thing made anew.

    The first repair may be to leave it as it is. Raises LookupError where none helps.
    """
    for letter, repair in repairs.items():
        if works(repair(make())):
            return letter
    raise LookupError("no repair helps")
