"""A limit of threads for each cell: one that starts more is told so by an error, and what it started is ended.

It is Python's own threads that are counted, by code that a learner can reach around. Who does is stopped by the watcher
outside (`runner`), and that ends the submission.
"""

from __future__ import annotations

import _thread
import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any

from course_utils.grading.wire import MAX_THREADS


class TooManyThreads(RuntimeError):
    """A cell asked for more threads than one may start."""


class ThreadLimit:
    """Counts the threads that a cell starts. One is made before learner code runs, and stays for the process's life."""

    def __init__(self, starts: Callable[[], None] = lambda: None) -> None:
        """Count from now on. `starts` is called before each thread is started."""
        self._starts = starts
        self._start, self._count = _thread.start_new_thread, _thread._count
        self._frames = sys._current_frames
        self._raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
        self._before = self._count()
        self._begun: set[int] = set()
        self._reached = False
        modules: tuple[Any, ...] = (_thread, threading)
        for module, name in zip(modules, ("start_new_thread", "_start_new_thread"), strict=True):
            setattr(module, name, self._limited)
        _thread.start_new = self._limited

    def begin(self) -> None:
        """Count from here: what earlier cells left running is not this cell's."""
        self._before = self._count()
        self._reached = False

    @property
    def reached(self) -> bool:
        """Whether the cell asked for more than it may have, or than the process had room for."""
        return self._reached

    def end(self) -> None:
        """Tell the threads that cells began to end. One that waits in C, as a sleeping one does, ends on its return."""
        for thread in self._frames():
            if thread in self._begun:
                self._raise_in(ctypes.c_ulong(thread), ctypes.py_object(SystemExit))

    def _limited(self, function: Callable[..., object], *arguments: Any) -> int:
        if self._count() - self._before >= MAX_THREADS:
            self._reached = True
            raise TooManyThreads(f"a cell may start {MAX_THREADS} threads, and this one has")
        self._starts()
        try:
            thread = self._start(function, *arguments)
        except RuntimeError:
            self._reached = True
            raise
        self._begun.add(thread)
        return thread
