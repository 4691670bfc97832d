"""Large pages: a fork copies a table of all pages of its parent's memory, and its end takes that down again.

With pages of 2 MB in place of 4 kB both take a third of the time. Where a child writes, 4 kB are copied, as ever.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from course_utils.grading.sandbox import kernel

LARGE = 2 << 20


def enlarge() -> None:
    """Move this process's memory into large pages, where the kernel can (Linux 6.1 and later). Nothing else changes."""
    for start, size in _areas(Path("/proc/self/maps").read_text()):
        with contextlib.suppress(OSError):  # an older kernel, or no memory in one piece: then pages stay small
            kernel.madvise(start, size, kernel.MADV_COLLAPSE)


def _areas(maps: str) -> Iterator[tuple[int, int]]:
    """Yield start and size of what a process may write to and shares with no file, in whole large pages."""
    for line in maps.splitlines():
        span, permissions, _, _, _, *name = line.split(maxsplit=5)
        if permissions != "rw-p" or name not in ([], ["[heap]"]):
            continue
        first, last = (int(end, 16) for end in span.split("-"))
        start, end = -(-first // LARGE) * LARGE, last // LARGE * LARGE
        if end > start:
            yield start, end - start
