"""One run at a time: a lock beside a database, which goes with the process that holds it, however that ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from course_utils.grading.errors import GradingError


class Busy(GradingError):
    """Another run is at work on the same database. The message says which, and what to do."""


@contextmanager
def alone(database: Path) -> Iterator[None]:
    """Keep every other run from this database while the body runs. Raises Busy where one is at work on it.

    The lock is on a file beside it, which stays: to remove it would let two runs lock two files of one name. It is the
    kernel's (`flock`), and no process that this one starts inherits it. Where a file system has no locks, or nothing
    may be written beside the database, nothing is kept off.
    """
    file = Path(f"{os.path.realpath(database)}.lock")
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError:
        yield
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(f"{database}: {_who(descriptor)} is grading into it. Wait for its end, or stop it.") from None
        except OSError:
            pass
        else:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _who(descriptor: int) -> str:
    number = os.pread(descriptor, 20, 0)
    return f"another `course grade` (process {int(number)})" if number.isdigit() else "another `course grade`"
