"""How long a run works on what one student handed in: so long that no class waits for one of them."""

from __future__ import annotations

import threading
from collections import defaultdict

TIMES = 3  # the limit of a submission, for all of one student's that are slow
SLOW = 1 / 2  # of the limit: what ends before costs nothing, however many there are

_OVER = (
    "It was not run: other notebooks of this student took {:.0f} seconds in this run, which waits for {:.0f} seconds "
    "of one student's, beside those that are quick. The same command tries it again."
)


class Patience:
    """The seconds that each student's slow submissions took in a run. Threads share it."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._spent: dict[str, float] = defaultdict(float)

    def took(self, student: str, seconds: float) -> None:
        """Count the seconds of a submission, where it is slow."""
        if seconds > SLOW * self._limit:
            with self._lock:
                self._spent[student] += seconds

    def over(self, student: str) -> str:
        """Return why no further submission of this student's is run, or nothing where one is."""
        with self._lock:
            spent = self._spent.get(student, 0.0)
        return _OVER.format(spent, TIMES * self._limit) if spent >= TIMES * self._limit else ""
