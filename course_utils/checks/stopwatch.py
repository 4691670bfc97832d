"""How long an answer has run: its own time, not that of a busy machine or of a library's first import."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from types import FrameType

from course_utils.checks.frames import importing

# What all imports of libraries may take under one limit. A slow machine needs 10 s for torch._dynamo.
IMPORT_SECONDS = 60.0

# A thread that computes for less than this between two looks, or for less than this share of the time, waits: for a
# lock, for input, for the end of a sleep. One that a busy machine keeps from running has 1 to 4 ms at a time (Linux).
_WAITING_SECONDS, _WAITING_SHARE = 0.001, 0.02
# What computes is counted a tenth of the wall time at least: short sleeps in a loop would last for minutes. With 5 s an
# answer that computes for 0.2 s, as slow right ones do, has 50 s for it.
_BACKSTOP = 10
# The most wall time that one look counts. Looks come four times as often, except where the whole process was stopped.
_MOST_SECONDS = 0.2

# Learner code may replace what the modules hold.
_wall, _frames = time.monotonic, sys._current_frames


class Stopwatch:
    """Counts what a thread spends, at each look at what it does. What lies between two looks belongs to the second.

    `cpu` is a clock of the thread's CPU seconds.

    `used` are the seconds that are the answer's own: CPU time of its thread while it computes, wall time while it
    waits. `imported` are those of imports, counted likewise.
    """

    def __init__(self, cpu: Callable[[], float]) -> None:
        self.used = self.imported = 0.0
        self._cpu = cpu
        self._last = self._cpu(), _wall()

    def look(self, frame: FrameType | None) -> None:
        """Count the time since the last look, by what the thread does in `frame`."""
        cpu, wall = self._cpu() - self._last[0], _wall() - self._last[1]
        at_most = min(wall, _MOST_SECONDS)
        waits = cpu < min(_WAITING_SHARE * wall, _WAITING_SECONDS)
        seconds = at_most if waits else max(cpu, at_most / _BACKSTOP)
        if self.may_import and (importing(frame) or (waits and any(map(importing, _frames().values())))):
            self.imported += seconds
        else:
            self.used += seconds
        self._last = self._cpu(), _wall()  # the time that looking took is nobody's

    @property
    def may_import(self) -> bool:
        """Whether imports are free. They are no more once they have taken IMPORT_SECONDS together."""
        return self.imported < IMPORT_SECONDS


def cpu_clock(thread: int) -> Callable[[], float]:
    """Return a clock of the CPU seconds of a thread that is alive, for others to read.

    Where the system has none (macOS, Windows) it counts those of all threads of the process.
    """
    if hasattr(time, "pthread_getcpuclockid"):
        return partial(time.clock_gettime, time.pthread_getcpuclockid(thread))
    return time.process_time
