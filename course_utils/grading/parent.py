"""The controller's handle on one warm parent: starting it, and running one submission in a child of its."""

from __future__ import annotations

import contextlib
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import msgspec

from course_utils.checks.data import Raised, TimedOut, decode
from course_utils.checks.exercise import Exercise, Seen
from course_utils.grading import wire
from course_utils.grading.runner import STOP
from course_utils.grading.sandbox import Limits, child_environment
from course_utils.grading.submission import Cell, Submission

Kind = TypeVar("Kind")

START_SECONDS = 120.0
# The time that a watcher needs to see that a limit is passed, and to say so.
GRACE_SECONDS = 5.0


@dataclass(frozen=True)
class Posed:
    """An exercise with the cases of this run, encoded: made once, and the same for everybody."""

    exercise: Exercise
    cases: tuple[tuple[str, bytes], ...]


@dataclass
class Answered:
    """What was seen of one exercise. Untrusted, but plain data of the expected types."""

    attempted: bool = False
    problem: str = ""
    seen: list[Seen] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)
    changed: dict[str, None] = field(default_factory=dict)
    seconds: float = 0.0
    complete: bool = False


@dataclass
class Attempt:
    """What one child did: the exercises in the order in which they were tried, and how it ended.

    `stopped` and `starved` are indices of cells that were stopped by their time limit, or got no memory.
    """

    answers: dict[str, Answered] = field(default_factory=dict)
    ran: bool = False
    stopped: tuple[int, ...] = ()
    starved: tuple[int, ...] = ()
    ended: wire.Ended = field(default_factory=partial(wire.Ended, "died"))
    trouble: str = ""


class ParentFailed(Exception):
    """A warm parent could not be started, or is gone. The message says how."""


class WarmParent:
    """A process that has imported everything and forks a child for each submission. One thread uses it at a time."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "course_utils.grading.runner", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                env=child_environment(),
                cwd="/",
                start_new_session=True,  # Ctrl-C is the controller's alone
            )
        self.ready: wire.Ready = self._said(wire.Ready, START_SECONDS)

    def attempt(
        self, submission: Submission, posed: Sequence[Posed], limits: Limits, cell_seconds: float, case_seconds: float
    ) -> Attempt:
        """Run a submission's cells in a new child and observe the exercises, until it ends or all are observed.

        Raises ParentFailed where the warm parent itself is gone; this handle is of no use then.
        """
        attempt = Attempt()
        line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        start = msgspec.structs.replace(limits, readable=self.ready.readable, hidden=self.ready.hidden)
        with line:
            with theirs:
                self._tell(msgspec.msgpack.encode(wire.Start(submission.assignment, start)), [theirs.fileno()])
            self._said(wire.Started, START_SECONDS)
            talk = _Talk(line, time.monotonic() + limits.seconds + GRACE_SECONDS)
            try:
                _converse(talk, attempt, submission.cells, posed, cell_seconds, case_seconds)
            except wire.Closed:
                pass
            except wire.WireError as error:
                attempt.trouble = str(error)
            if not attempt.trouble and not _finished(attempt, posed):
                # It hung up: the watcher is about to say why. It is told to stop once it has had the time to.
                with contextlib.suppress(OSError):
                    self._control.settimeout(GRACE_SECONDS)
                    if self._control.recv(1, socket.MSG_PEEK):
                        pass
            self._tell(STOP, [])
            attempt.ended = self._said(wire.Ended, GRACE_SECONDS)
        return attempt

    def kill(self) -> None:
        """End the process at once, and with it the child that it may have. An attempt that is under way fails."""
        self._process.kill()

    def close(self) -> None:
        """End the process, and let go of it."""
        self._control.close()
        try:
            self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
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
        return msgspec.msgpack.decode(packet, type=kind)


@dataclass
class _Talk:
    """The conversation with a child: each answer must repeat the token of its question, and come in time."""

    line: socket.socket
    end: float

    def ask(self, question: wire.Request, kind: type[Kind]) -> Kind:
        if wire.unasked(self.line) and self.line.recv(1, socket.MSG_PEEK):
            raise wire.WireError("a message came that nobody asked for")
        wire.send(self.line, question, max(self.end - time.monotonic(), 0.1))
        answer: Kind = wire.receive(self.line, kind, max(self.end - time.monotonic(), 0.1))
        if answer.token != question.token:  # type: ignore[attr-defined]
            raise wire.WireError("an answer came to another question")
        return answer


def _converse(
    talk: _Talk,
    attempt: Attempt,
    cells: Sequence[Cell],
    posed: Sequence[Posed],
    cell_seconds: float,
    case_seconds: float,
) -> None:
    sources = tuple(cell.source for cell in cells)
    ran = talk.ask(wire.Run(_token(), sources, cell_seconds), wire.Ran)
    attempt.ran, attempt.stopped, attempt.starved = True, ran.stopped, ran.starved
    for item in posed:
        started = time.monotonic()
        answer = attempt.answers[item.exercise.id] = Answered()
        for _ in _observed(talk, answer, item, case_seconds):
            answer.seconds = time.monotonic() - started
        answer.seconds = time.monotonic() - started
        answer.complete = True


def _observed(talk: _Talk, answer: Answered, item: Posed, seconds: float) -> Iterator[None]:
    exercise = item.exercise
    tried = talk.ask(wire.Try(_token(), exercise.id, exercise.lesson, exercise.call, seconds), wire.Tried)
    answer.attempted, answer.problem = tried.attempted, tried.problem
    yield
    if not tried.attempted or tried.problem:
        return
    for name, given in item.cases:
        seed = secrets.randbelow(2**31)  # not the cases' own
        seen = talk.ask(wire.Observe(_token(), name, given, seed, seconds), wire.Seen)
        answer.seen.append(_decoded(seen.seen))
        answer.warnings |= dict.fromkeys(seen.warnings[:10])
        answer.changed |= dict.fromkeys(seen.changed[:10])
        yield
        if isinstance(answer.seen[-1], TimedOut):
            return


def _decoded(message: bytes) -> Seen:
    try:
        seen = decode(message)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError) as error:
        raise wire.WireError(f"what came is no observation: {error}") from error
    if not isinstance(seen, dict | Raised | TimedOut):
        raise wire.WireError(f"what came is no observation but of type {type(seen).__name__}")
    return seen


def _finished(attempt: Attempt, posed: Sequence[Posed]) -> bool:
    return (
        attempt.ran
        and all(item.exercise.id in attempt.answers for item in posed)
        and all(answer.complete for answer in attempt.answers.values())
    )


def _token() -> bytes:
    return secrets.token_bytes(16)
