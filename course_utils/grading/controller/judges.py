"""The judging processes as the controller sees them: they are lent, one to a submission, and ended at any time."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
import time
from typing import TypeVar

import msgspec

from course_utils.grading import wire
from course_utils.grading.controller import orders
from course_utils.grading.controller.parent import last_words, let_go, started
from course_utils.grading.controller.posing import Posed
from course_utils.grading.errors import GradingError

Kind = TypeVar("Kind")

PROGRAM = "course_utils.grading.controller.judging_child"
START_SECONDS = 120.0
TRIES = 3  # a process may have been ended from outside


class JudgesFailed(GradingError):
    """The processes that judge cannot be started, or are gone. The message says how."""


class Judge:
    """A judging child, and the line to it. One thread uses it at a time."""

    def __init__(self, process: int, line: socket.socket, parent: _Parent) -> None:
        self.process = process
        self.parent = parent
        self._line = line

    def ask(self, order: orders.Pose | orders.Reach | orders.Judge, kind: type[Kind], seconds: float) -> Kind:
        """Return the answer to an order. Raises wire.Closed where the process is gone, or WireError after `seconds`."""
        end = time.monotonic() + seconds
        wire.send(self._line, order, seconds)
        answer: Kind = wire.receive(self._line, kind, max(end - time.monotonic(), 0.1), orders.MAX_ORDER)
        return answer

    def close(self) -> None:
        """Hang up."""
        self._line.close()


class Judges:
    """The judging processes of a grader: a parent that is started at once, and as many children as are lent at a time.

    A child lives as long as it behaves. The lock is held while one is begun or ended, never while one judges.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parent = _Parent()
        self._idle: list[Judge] = []
        self._closed = False

    def lend(self, lesson: str) -> Judge:
        """Return a child, for one caller. Raises JudgesFailed where none can be had, and after `close`."""
        with self._lock:
            if self._closed:
                raise JudgesFailed("grading was stopped")
            while self._idle:
                judge = self._idle.pop()
                if judge.parent is self._parent:
                    return judge
                judge.close()
            try:
                return self._parent.begin(lesson)
            except JudgesFailed:
                if self._closed or not self._parent.served:  # a second one would fail as the first did
                    raise
                self._parent.close()
                self._parent = _Parent()
            return self._parent.begin(lesson)

    def pose(self, lesson: str, key: bytes) -> tuple[Posed, ...]:
        """Return the exercises of a lesson with their cases: none where it is no lesson.

        The same key makes the same cases. Raises JudgesFailed where that cannot be done.
        """
        for _ in range(TRIES):
            judge = self.lend(lesson)
            try:
                made = judge.ask(orders.Pose(lesson, key), orders.Made, START_SECONDS)
            except wire.WireError:
                code = self.end(judge)
            else:
                self.give_back(judge)
                return made.posed
        raise JudgesFailed(f"the process that makes the cases of {lesson} ended with code {code}")

    def give_back(self, judge: Judge) -> None:
        """Take a child back that behaved."""
        with self._lock:
            if self._closed:
                judge.close()
            else:
                self._idle.append(judge)

    def end(self, judge: Judge) -> int:
        """End a child. Return its exit code, or the negative number of the signal that had ended it, or ends it now."""
        judge.close()
        with self._lock, contextlib.suppress(JudgesFailed):
            return judge.parent.end(judge.process)
        return -signal.SIGKILL  # with its parent

    def close(self) -> None:
        """End all, also what judges now."""
        self._closed = True
        self._parent.kill()  # whoever holds the lock waits for it
        with self._lock:
            for judge in self._idle:
                judge.close()
            self._parent.close()


class _Parent:
    """The process that forks the children. It decodes nothing."""

    def __init__(self) -> None:
        self.served = False
        self._control, self._process = started(PROGRAM)

    def begin(self, lesson: str) -> Judge:
        line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with theirs:
                begun = self._told(orders.Begin(lesson), orders.Begun, [theirs.fileno()])
        except BaseException:
            line.close()
            raise
        self.served = True
        return Judge(begun.process, line, self)

    def end(self, process: int) -> int:
        return self._told(orders.End(process), orders.Ended, []).code

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        let_go(self._control, self._process)

    def _told(self, order: orders.Begin | orders.End, kind: type[Kind], descriptors: list[int]) -> Kind:
        self._control.settimeout(START_SECONDS)
        try:
            socket.send_fds(self._control, [msgspec.msgpack.encode(order)], descriptors)
            packet = self._control.recv(65536)
        except TimeoutError as error:
            raise JudgesFailed(f"the process that judges said nothing for {START_SECONDS:g} seconds") from error
        except OSError:  # it is gone
            packet = b""
        if not packet:
            raise JudgesFailed(f"the process that judges {last_words(self._process)}")
        return msgspec.msgpack.decode(packet, type=kind)
