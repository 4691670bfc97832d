"""Warm parents as the controller sees them: processes that are told what to do, and say how that ended."""

from __future__ import annotations

import os
import queue
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TypeVar

import msgspec

from course_utils.grading import wire
from course_utils.grading.controller.machine import child_environment
from course_utils.grading.errors import GradingError

Kind = TypeVar("Kind")

RUNNER = "course_utils.grading.sandbox.runner"
START_SECONDS = 120.0
# The time that a watcher needs to see that a limit is passed, and to say so.
GRACE_SECONDS = 5.0


def started(program: str) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Start a module of the course as a process that takes orders. Return the socket for them, and the process.

    What it says on standard error goes into memory. A pipe is read by nobody before the process ends, and when it is
    full, stops whoever writes.
    """
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    said: IO[bytes] = os.fdopen(os.memfd_create("stderr"), "w+b", buffering=0)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", program, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            pass_fds=[theirs.fileno()],
            env=child_environment(),
            cwd="/",
            start_new_session=True,  # Ctrl-C is the controller's alone
        )
    process.stderr = said
    return control, process


def let_go(control: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """End a process that was `started`, and close what leads to it."""
    control.close()
    process.kill()
    process.wait()
    if process.stderr is not None:
        process.stderr.close()


def last_words(process: subprocess.Popen[bytes]) -> str:
    """Wait for the end of a process that was `started`, and say how it ended and the last line that it wrote."""
    process.wait()
    said = ""
    if process.stderr is not None and not process.stderr.closed:
        descriptor = process.stderr.fileno()
        size = os.fstat(descriptor).st_size
        said = os.pread(descriptor, 2000, max(size - 2000, 0)).decode(errors="replace").strip()
    return f"ended with code {process.returncode}" + (f": {said.splitlines()[-1]}" if said else "")


class ParentFailed(GradingError):
    """A warm parent could not be started, or is gone. The message says how."""


class WarmParent:
    """A process that has PyTorch imported and forks a child for each submission. One thread uses it at a time.

    It is started at once, and waited for when a child is.
    """

    def __init__(self) -> None:
        self._stopping = False
        self._control, self._process = started(RUNNER)

    def begin(self, lesson: str, limits: wire.Limits) -> socket.socket:
        """Tell it to fork a child, and return the line to that, which whoever talks there closes.

        The child is there when `started` returns. Until then the warm parent loads what it lacks.
        """
        if self._stopping:
            self.ended()
        line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with theirs:
                self._tell(msgspec.msgpack.encode(wire.Start(lesson, limits)), [theirs.fileno()])
        except BaseException:
            line.close()
            raise
        return line

    def started(self) -> None:
        """Wait until it forks the child. Raises ParentFailed where it could not start itself."""
        self._said(wire.Started, START_SECONDS)

    def stop(self, hung_up: bool = False) -> None:
        """Stop the child, without waiting for its end. One that hung up has ended: its watcher is about to say why."""
        if hung_up:
            select.select([self._control], [], [], GRACE_SECONDS)
        self._tell(wire.STOP, [])
        self._stopping = True

    def ended(self) -> wire.Ended:
        """Wait for the end of the child that was stopped, and return how it ended."""
        self._stopping = False
        return self._said(wire.Ended, GRACE_SECONDS)

    def kill(self) -> None:
        """End the process at once, and with it the child that it may have. An attempt that is under way fails."""
        self._process.kill()

    def close(self) -> None:
        """End the process, and let go of it. It holds nothing that would be lost."""
        let_go(self._control, self._process)

    def _tell(self, packet: bytes, descriptors: list[int]) -> None:
        self._control.settimeout(GRACE_SECONDS)
        try:
            socket.send_fds(self._control, [packet], descriptors)
        except TimeoutError as error:
            raise ParentFailed(f"the warm parent took no orders for {GRACE_SECONDS:g} seconds") from error
        except OSError as error:
            raise self._gone() from error

    def _gone(self) -> ParentFailed:
        return ParentFailed(f"the warm parent {last_words(self._process)}")

    def _said(self, kind: type[Kind], seconds: float) -> Kind:
        self._control.settimeout(seconds)
        try:
            packet = self._control.recv(65536)
        except TimeoutError as error:
            raise ParentFailed(f"the warm parent said nothing for {seconds:g} seconds") from error
        except OSError:  # what it was told last was never read
            packet = b""
        if not packet:
            raise self._gone()
        try:
            return msgspec.msgpack.decode(packet, type=kind)
        except msgspec.ValidationError as error:  # a watcher that was killed while it told its child's end
            raise ParentFailed(f"the warm parent said something else than {kind.__name__}: {error}") from error


class Parents:
    """The warm parents of a grader, as many as it has threads that want one at a time."""

    def __init__(self, first: WarmParent | None = None) -> None:
        self._idle: queue.SimpleQueue[WarmParent] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._busy: set[WarmParent] = set()
        self._stopped = False
        if first is not None:
            self._idle.put(first)

    @contextmanager
    def one(self) -> Iterator[WarmParent]:
        """Lend a warm parent. One with which anything fails is ended. Raises ParentFailed after `stop`."""
        try:
            parent = self._idle.get_nowait()
        except queue.Empty:
            if self._stopped:
                raise ParentFailed("grading was stopped") from None
            parent = WarmParent()
        try:
            with self._lock:
                self._busy.add(parent)
            yield parent
        except BaseException:
            parent.close()
            raise
        finally:
            with self._lock:
                self._busy.discard(parent)
        self._idle.put(parent)

    def stop(self) -> None:
        """End those that are lent, and what they run, and start no more."""
        with self._lock:
            self._stopped = True
            for parent in self._busy:
                parent.kill()

    def close(self) -> None:
        """Let go of those that are not lent."""
        while not self._idle.empty():
            self._idle.get().close()
