"""Predictions: a table of entries that a run makes anew, and what is told of a wrong one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from course_utils.checks.compare import describe, right_entries
from course_utils.checks.data import Case, Observation, Value
from course_utils.checks.exercise import Finding


def one_case(seed: int) -> list[Case]:
    """Return the only case of an exercise in which nothing is given."""
    return [Case("")]


@dataclass(frozen=True)
class Table:
    """A table to predict. `run` makes the right one, once in a process; it may draw random numbers.

    `reasons` says of each entry why it is so. Who has the table right reads them.
    """

    run: Callable[[], dict[str, Any]]
    reasons: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _right(self) -> dict[str, Any]:
        with torch.random.fork_rng(devices=[]):
            return self.run()

    def right(self) -> dict[str, Any]:
        """Return the right entries, in a dict of the caller's own."""
        return dict(self._right)

    def judge(self, case: Case, seen: Observation) -> Iterator[Finding]:
        """Find which entries are right."""
        yield from right_entries(seen["value"], self.right(), "Your prediction")

    def debrief(self, seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
        """Give each entry with its reason."""
        for name, value in self._right.items():
            if name in self.reasons:
                yield f"`{name}`: {value}. {self.reasons[name]}"

    def but(self, **changed: Any) -> Callable[[Case, Observation], bool]:
        """Tell a prediction that is right but for these entries."""
        return lambda case, seen: bool(seen["value"] == {**self.right(), **changed})


def of_a_kind(value: Value, names: Iterable[str], odd: tuple[type, ...], expected: str) -> Iterator[Finding]:
    """Find whether the entries of these names have types in which no right one can be given, and say so."""
    entries = value if isinstance(value, dict) else {}
    for name in names:
        if name in entries and type(entries[name]) in odd:
            yield Finding("kind", False, f"Your entry for {name} is {describe(entries[name])}; expected {expected}.")
            return


def raises(action: Callable[[], object]) -> bool:
    """Return whether PyTorch refuses an action with a RuntimeError."""
    try:
        action()
    except RuntimeError:
        return True
    return False
