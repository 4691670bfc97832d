"""Stopping code that never ends."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# A loop may swallow the first exception that stops it, so it is raised again and again until it gets through.
AGAIN_SECONDS = 0.05


class TimeUp(BaseException):
    """The time is over. No Exception, so that `except Exception` in the stopped code does not catch it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeUp in the body once `seconds` of wall time have passed.

    With POSIX signals, in the main thread, this also ends a sleep. Elsewhere a watching thread raises TimeUp between
    two steps of Python code. Neither can end a single long call inside C.
    """
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
        with _by_signal(seconds):
            yield
    else:
        with _by_thread(seconds):
            yield


@contextmanager
def _by_signal(seconds: float) -> Iterator[None]:
    over = False

    def stop(number: int, frame: FrameType | None) -> None:
        if not over:
            raise TimeUp

    before = signal.signal(signal.SIGALRM, stop)
    start = time.monotonic()
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:  # the session had a timer of its own
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - start), 0.001), interval)


@contextmanager
def _by_thread(seconds: float) -> Iterator[None]:
    target = ctypes.c_ulong(threading.get_ident())
    over = threading.Event()
    lock = threading.Lock()

    def watch() -> None:
        wait = seconds
        while not over.wait(wait):
            with lock:
                if not over.is_set():
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(target, ctypes.py_object(TimeUp))
            wait = AGAIN_SECONDS

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        with lock:
            over.set()
        ctypes.pythonapi.PyThreadState_SetAsyncExc(target, None)  # one that was set but not yet raised
        watcher.join()
