"""Stopping code that never ends."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

from course_utils.checks.frames import is_course, is_learners

# A loop may swallow the first exception that stops it, so it is raised again and again until it gets through.
AGAIN_SECONDS = 0.05

# Files whose code enters and leaves the time limit.
_LEAVING = (__file__, contextlib.__file__)


class TimeUp(BaseException):
    """The time is over. No Exception, so that `except Exception` in the stopped code does not catch it."""


@contextlib.contextmanager
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


@contextlib.contextmanager
def _by_signal(seconds: float) -> Iterator[None]:
    over = raised = False

    def on_line(frame: FrameType, event: str, argument: Any) -> Any:
        if over or not is_learners(frame.f_code.co_filename):
            return None
        if event == "line":
            raise TimeUp
        return on_line

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal raised
        learners = list(_learners(frame))
        if over or (raised and not learners):  # what runs now puts things back
            return
        if frame is not None and frame.f_code.co_filename in _LEAVING:
            return  # raised here it would skip the `finally` below and leave the timer on; the next one comes soon
        raised = True
        # A loop around try and except: catches what is raised inside the try. So from now on every line of the
        # learner's raises, those of the handlers too.
        sys.settrace(on_line)
        for inner in learners:
            inner.f_trace = on_line
        raise TimeUp

    tracing = sys.gettrace()
    before = signal.signal(signal.SIGALRM, stop)
    start = time.monotonic()
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.settrace(tracing)
        signal.signal(signal.SIGALRM, before)
        if left:  # the session had a timer of its own
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - start), 0.001), interval)


def _learners(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the frames of the code that the course has called, without those of libraries, innermost first."""
    while frame is not None and not is_course(frame.f_code.co_filename):
        if is_learners(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


@contextlib.contextmanager
def _by_thread(seconds: float) -> Iterator[None]:
    target = threading.get_ident()
    over = threading.Event()
    lock = threading.Lock()
    raised = False

    def watch() -> None:
        nonlocal raised
        wait = seconds
        while not over.wait(wait):
            with lock:
                if not over.is_set():
                    raised = True
                    _raise_in(target)
            wait = AGAIN_SECONDS

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended = False
        while not ended:
            try:
                with lock:
                    over.set()
                ended = True
            except TimeUp:  # it came only now
                pass
        if raised:
            _take_back(target)
        watcher.join()


def _raise_in(thread: int) -> None:
    """Let a thread raise TimeUp at its next step. One that waits to be raised there already is replaced."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(TimeUp))


def _take_back(thread: int) -> None:
    """Leave this thread without an exception that waits to be raised.

    To set none instead would leave the interpreter looking for it before every step, for as long as it runs (and for
    ever at the first one where a profiler is on: CPython 3.11). So one more is set, and caught.
    """
    with contextlib.suppress(TimeUp):
        _raise_in(thread)
        while True:
            pass
