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
    )

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self._searches, self._step = 0, -1
        self._bytes: dict[str, Range] = {}
        self._empty: dict[str, Told] = {}
        self.readers = (self._wrapped, self._without_batches, refits, blended, unmasked, mixed)  # type: ignore[misc]

    def called(self, event: Call) -> None:
        super().called(event)
        if self._searches < _SEARCHES and self.clock.steps != self._step:
            self._searches, self._step = self._searches + 1, self.clock.steps
            self._bytes |= bytes_at_hand()
            self._empty |= empty_loaders()

    def _wrapped(self, scopes: Scopes, seen: Seen) -> Iterator[Told]:
        return wrapped(scopes, self._bytes)

    def _without_batches(self, scopes: Scopes, seen: Seen) -> Iterator[Told]:
        yield from self._empty.values()
