"""Which points rest on what was observed in the learner's process, in place of numbers that had to be computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from course_utils.checks.data import Array, Case
from course_utils.checks.exercise import Seen

# What an answer gave back. Whatever it is, the judge knows the right one, and the learner's process does not.
_GIVEN_BACK = ("value", "returned", "raised")


class Read(dict[str, Any]):
    """An observation that notes which of its entries a judge reads."""

    def __init__(self, observation: dict[str, Any]) -> None:
        super().__init__(observation)
        self.names: dict[str, None] = {}

    def __getitem__(self, name: str) -> Any:
        self.names[name] = None
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.names[name] = None
        return super().get(name, default)

    def items(self) -> Any:
        self.names |= dict.fromkeys(self)
        return super().items()

    def values(self) -> Any:
        self.names |= dict.fromkeys(self)
        return super().values()


def noting(pairs: Iterable[tuple[Case, Seen]]) -> list[tuple[Case, Seen]]:
    """Return the pairs with observations that note what is read of them."""
    return [(case, Read(seen) if isinstance(seen, dict) else seen) for case, seen in pairs]


def observed(pairs: Sequence[tuple[Case, Seen]]) -> tuple[str, ...]:
    """Return what a judge read that is neither given back by the answer nor made of numbers, in its own order.

    Counts, flags and names are known to whoever reads the course. Tensors and floats have to be computed, as cases are
    secret.
    """
    names: dict[str, None] = {}
    for _, seen in pairs:
        if isinstance(seen, Read):
            names |= dict.fromkeys(name for name in seen.names if name in seen and not _numbers(dict.get(seen, name)))
    return tuple(name for name in names if name not in _GIVEN_BACK)


def _numbers(value: Any) -> bool:
    return any(isinstance(one, Array | float) for one in _leaves(value))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _leaves(one)
    else:
        yield value
