"""How a script prepares inputs and labels: read at the end, in what ran."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from course_utils.audit.bytes_kept import Range, bytes_at_hand, wrapped
from course_utils.audit.empty import empty_loaders
from course_utils.audit.events import Call
from course_utils.audit.labels import blended, unmasked
from course_utils.audit.mixing import mixed
from course_utils.audit.reading import Reading, Scopes, Seen, Told
from course_utils.audit.refits import refits
from course_utils.audit.renumbering import numbered_apart, renumberings

_SEARCHES = 2


class Preparing(Reading):
    """Bytes, scales and labels, between a store and a model."""

    codes: ClassVar = (
        "bytes-wrap",
        "fitted-again",
        "labels-blended",
        "unmasked-asked",
        "mixed-apart",
        "loader-empty",
        "ids-apart",
    )

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self._searches, self._step = 0, -1
        self._bytes: dict[str, Range] = {}
        self._at_hand: dict[str, Told] = {}  # what the values of variables show
        self.readers = (self._wrapped, self._shown, refits, blended, unmasked, mixed, self._renumbered)  # type: ignore[misc]

    def called(self, event: Call) -> None:
        super().called(event)
        if self._searches < _SEARCHES and self.clock.steps != self._step:
            self._searches, self._step = self._searches + 1, self.clock.steps
            self._bytes |= bytes_at_hand()
            self._at_hand |= empty_loaders() | numbered_apart()

    def _wrapped(self, scopes: Scopes, seen: Seen) -> Iterator[Told]:
        return wrapped(scopes, self._bytes)

    def _renumbered(self, scopes: Scopes, seen: Seen) -> Iterator[Told]:
        return renumberings(scopes)

    def _shown(self, scopes: Scopes, seen: Seen) -> Iterator[Told]:
        yield from self._at_hand.values()
