"""Stopping code that never ends."""

from __future__ import annotations

import contextlib
import ctypes
import dis
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

from course_utils.checks.frames import importing, inside_import, is_learners, learners
from course_utils.checks.stopwatch import Stopwatch, cpu_clock

# How often the limited code is looked at, and how often at least before its time is over. A loop may swallow the first
# exception that stops it, so each look after that raises it again until it gets through.
LOOK_SECONDS = 0.05
LOOKS = 4
# How long a cut waits for what a library has begun (a state to put back, a table to fill) to end in the learner's code.
PATIENCE_SECONDS = 1.0

# Files whose code enters and leaves the time limit.
_LEAVING = (__file__, contextlib.__file__)
# Learner code may replace what the modules hold.
_thread_time = time.thread_time
_PUSH = dis.opmap["PUSH_EXC_INFO"]
# The time limits that the main thread is in, the innermost last.
_running: list[Stopwatch] = []


class TimeUp(BaseException):
    """The time is over. No Exception, so that `except Exception` in the stopped code does not catch it."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeUp in the body once it has used `seconds` of its own time, which `Stopwatch` counts.

    These are seconds of computing or of waiting. Not counted is what a busy machine takes, and what libraries import
    when something is first used, up to IMPORT_SECONDS. Such an import is not cut. Any other call of a library's may end
    within PATIENCE_SECONDS more.

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
    watch = Stopwatch(_thread_time)

    def on_line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal raised
        if over or not is_learners(frame.f_code.co_filename):
            return None
        if event == "line" and not _begins_a_handler(frame) and _may_cut(frame, watch, seconds):
            raised = True
            raise TimeUp
        return on_line

    def look(number: int, frame: FrameType | None) -> None:
        nonlocal raised
        for one in _running:
            one.look(frame)
        if over or watch.used < seconds or _is_left_alone(frame, watch, raised):
            return
        # A loop around try and except: catches what is raised inside the try. So from now on every line of the
        # learner's raises, those of the handlers too.
        sys.settrace(on_line)
        for inner in learners(frame):
            inner.f_trace = on_line
        if _may_cut(frame, watch, seconds):
            raised = True
            raise TimeUp

    tracing = sys.gettrace()
    before = signal.signal(signal.SIGALRM, look)
    start = time.monotonic()
    _running.append(watch)
    left, interval = signal.setitimer(signal.ITIMER_REAL, *[_pause(seconds)] * 2)
    try:
        yield
    finally:
        over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        _running.remove(watch)
        sys.settrace(tracing)
        signal.signal(signal.SIGALRM, before)
        if left:  # the session had a timer of its own
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - start), 0.001), interval)


def _pause(seconds: float) -> float:
    return min(LOOK_SECONDS, seconds / LOOKS)


def _is_left_alone(frame: FrameType | None, watch: Stopwatch, raised: bool) -> bool:
    """Return whether nothing may be raised in `frame`, however long it takes."""
    if importing(frame) and watch.may_import:
        return True
    if raised and not any(learners(frame)):  # what runs now puts things back
        return True
    # Raised here it would skip the `finally` of a time limit and leave its timer on. The next look comes soon.
    return frame is not None and frame.f_code.co_filename in _LEAVING


def _may_cut(frame: FrameType | None, watch: Stopwatch, seconds: float) -> bool:
    """Return whether a cut in `frame` leaves nothing of a library's half done, or has waited long enough.

    A library that is torn stays so for the rest of the process: a module, for one, that is "partially initialized".
    """
    if watch.used > seconds + PATIENCE_SECONDS:
        return True
    return frame is not None and is_learners(frame.f_code.co_filename) and not inside_import(frame)


def _begins_a_handler(frame: FrameType) -> bool:
    """Return whether a frame is about to enter `except`, `finally` or the end of a `with`.

    What is raised there leaves its exception behind as the one being handled, for as long as the frame's caller runs,
    and the `__exit__` of a `with` is not called at all (CPython 3.11). The handler's first line comes next.
    """
    return frame.f_code.co_code[frame.f_lasti] == _PUSH


@contextlib.contextmanager
def _by_thread(seconds: float) -> Iterator[None]:
    target = threading.get_ident()
    over = threading.Event()
    lock = threading.Lock()
    raised = False
    watch = Stopwatch(cpu_clock(target))

    def look() -> None:
        nonlocal raised
        frame = sys._current_frames().get(target)
        watch.look(frame)
        if over.is_set() or watch.used < seconds or _is_left_alone(frame, watch, raised):
            return
        if _may_cut(frame, watch, seconds):
            raised = True
            _raise_in(target)

    def watching() -> None:
        while not over.wait(_pause(seconds)):
            with lock:
                look()

    watcher = threading.Thread(target=watching, daemon=True)
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
