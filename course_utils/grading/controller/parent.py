"""A warm parent as the controller sees it: a process that is told what to do, and says how that ended."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
from functools import cached_property
from typing import TypeVar

import msgspec

from course_utils.grading import wire
from course_utils.grading.controller.machine import child_environment
from course_utils.grading.errors import GradingError

Kind = TypeVar("Kind")

RUNNER = "course_utils.grading.sandbox.runner"
START_SECONDS = 120.0
# The time that a watcher needs to see that a limit is passed, and to say so.
GRACE_SECONDS = 5.0


class ParentFailed(GradingError):
    """A warm parent could not be started, or is gone. The message says how."""


class WarmParent:
    """A process that has PyTorch imported and forks a child for each submission. One thread uses it at a time.

    It is started at once, and waited for when it is first used.
    """

    def __init__(self) -> None:
        self._stopping = False
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", RUNNER, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                env=child_environment(),
                cwd="/",
                start_new_session=True,  # Ctrl-C is the controller's alone
            )

    @cached_property
    def ready(self) -> wire.Ready:
        """What it said when it had started. Raises ParentFailed where it could not start."""
        return self._said(wire.Ready, START_SECONDS)

    def begin(self, lesson: str, limits: wire.Limits, theirs: socket.socket) -> None:
        """Let it fork a child that is reached by the socket `theirs`, and return when it does."""
        start = msgspec.structs.replace(limits, readable=self.ready.readable, hidden=self.ready.hidden)
        if self._stopping:
            self.ended()
        self._tell(msgspec.msgpack.encode(wire.Start(lesson, start)), [theirs.fileno()])
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
        self._control.close()
        self._process.kill()
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _tell(self, packet: bytes, descriptors: list[int]) -> None:
        self._control.settimeout(GRACE_SECONDS)
        try:
            socket.send_fds(self._control, [packet], descriptors)
        except OSError as error:
            raise ParentFailed(f"the warm parent takes no orders: {error}") from error

    def _said(self, kind: type[Kind], seconds: float) -> Kind:
        self._control.settimeout(seconds)
        try:
            packet = self._control.recv(65536)
        except OSError as error:
            raise ParentFailed(f"the warm parent said nothing for {seconds:g} seconds") from error
        if not packet:
            self._process.wait()
            said = self._process.stderr.read()[-2000:].decode(errors="replace") if self._process.stderr else ""
            raise ParentFailed(f"the warm parent ended with code {self._process.returncode}: {said}")
        try:
            return msgspec.msgpack.decode(packet, type=kind)
        except msgspec.ValidationError as error:  # a watcher that was killed while it told its child's end
            raise ParentFailed(f"the warm parent said something else than {kind.__name__}: {error}") from error
