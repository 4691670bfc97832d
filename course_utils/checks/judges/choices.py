"""Tables whose entries are chosen from a list of letters: reasons, repairs, faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.checks.compare import listed
from course_utils.checks.data import Case, Observation, Value
from course_utils.checks.exercise import Finding
from course_utils.checks.judges.predictions import Table


@dataclass(frozen=True)
class Choice(Table):
    """A table to predict, each of whose entries is one of `letters`, which are small. A capital is as good."""

    letters: Sequence[str] = ()

    def read(self, seen: Observation) -> Value:
        """Return what was given, with the letters of a dict made small."""
        value = seen["value"]
        if not isinstance(value, dict):
            return value
        return {name: entry.strip().lower() if isinstance(entry, str) else entry for name, entry in value.items()}

    def judge(self, case: Case, seen: Observation) -> Iterator[Finding]:
        """Find which entries are letters of the list, and which are right."""
        read = self.read(seen)
        found = list(super().judge(case, {**seen, "value": read}))
        if isinstance(read, dict) and not any(finding.prop in ("keys", "complete") for finding in found):
            odd = [name for name, entry in read.items() if not isinstance(entry, str) or entry not in self.letters]
            if odd:
                text = f"Each entry is one of the letters {listed(self.letters)}, as a text. Look at {listed(odd)}."
                yield Finding("letters", False, text)
                return
        yield from found

    def but(self, **changed: Any) -> Callable[[Case, Observation], bool]:
        """Tell a choice that is right but for these entries."""
        return lambda case, seen: bool(self.read(seen) == {**self.right(), **changed})
