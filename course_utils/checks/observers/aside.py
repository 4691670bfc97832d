"""Noticing, by Python's own audit, that an answer reaches for frames, code, the collector or a thread of its own.

What audits cannot be taken away again, and sees what is done, whatever names it is done by.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from course_utils.checks.frames import importing
from course_utils.checks.observers import telling

REACH = "reached: "  # before the name of an event

THREAD, EARLIER = "a thread", "a thread, before the case"
_EVENTS = frozenset(
    (
        *("sys._getframe", "sys._current_frames", "sys.setprofile", "sys.settrace", "sys.addaudithook"),
        *("gc.get_objects", "gc.get_referrers", "gc.get_referents", "code.__new__", "function.__new__"),
        *("object.__getattr__", "object.__setattr__", "object.__delattr__", "compile", "exec"),
        *("pickle.find_class", "marshal.loads", "ctypes.dlopen", "ctypes.cdata", "ctypes.string_at", "ctypes.dlsym"),
    )
)
# A process of its own is an answer's, whoever starts it, but for one that a library needs while it is imported:
# matplotlib asks `fc-list` for the system's fonts.
_PROCESSES = frozenset(("os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen", "os.exec", "os.system"))
# Modules that look at frames, or start threads, for whoever calls them.
_LOOKING = ("inspect", "threading", "concurrent.futures.thread", "multiprocessing.pool")
_LIMITING = ".sandbox.threads"  # stands between an answer and a thread


class Auditing:
    """Tells of each event that an answer brings about itself while a case is under way, and of threads before."""

    def __init__(self, is_learners: Callable[[str], bool]) -> None:
        """Begin to listen, which cannot be ended. `is_learners` says whose the code of a file is."""
        self._is_learners = is_learners
        self._busy = threading.local()
        self._under_way = False
        self._threads = False
        sys.addaudithook(self._heard)

    def begin(self) -> None:
        """Begin a case. A thread of the answer's that was started before may work for it."""
        self._under_way = True
        if self._threads:
            telling.tell(REACH + EARLIER)

    def end(self) -> None:
        """End a case."""
        self._under_way = False

    def thread(self) -> None:
        """Note that somebody starts a thread, which Python 3.11 does not audit."""
        if self._learners(sys._getframe(1)):
            if self._under_way:
                telling.tell(REACH + THREAD)
            else:
                self._threads = True

    def _heard(self, event: str, given: tuple[Any, ...]) -> None:
        if event in _PROCESSES and not importing(sys._getframe(1)):
            if self._under_way:
                telling.tell(REACH + event)
            else:
                self._threads = True
        if not self._under_way or event not in _EVENTS or getattr(self._busy, "now", False):
            return
        self._busy.now = True
        try:
            if self._learners(sys._getframe(1)):
                telling.tell(REACH + event)
        finally:
            self._busy.now = False

    def _learners(self, frame: FrameType | None) -> bool:
        """Say whether the learner's code did it, itself or by a function that is made for it."""
        while frame is not None:
            if self._is_learners(frame.f_code.co_filename):
                return True
            name = str(frame.f_globals.get("__name__"))
            if name not in _LOOKING and not name.endswith(_LIMITING):
                return False
            frame = frame.f_back
        return False
