"""One submission in a child of a warm parent: the conversation in which its cells run and its answers are observed."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import msgspec

from course_utils.checks.data import Raised, TimedOut, decode
from course_utils.checks.exercise import Exercise, Seen
from course_utils.grading import wire
from course_utils.grading.controller.parent import GRACE_SECONDS, WarmParent
from course_utils.grading.submission import Cell, Submission

# What one child may have observed, in bytes. The observations of all right answers of a lesson are a tenth of it.
# Empty dicts take 1 byte on the wire and 72 here: without this limit a child could fill the controller's memory.
MAX_SEEN = 4_000_000
MAX_TEXT = 4000
TOO_MUCH = "the observations of this notebook are together too large to be judged"

Kind = TypeVar("Kind")


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
    ended: wire.Ended = field(default_factory=partial(wire.Ended, "stopped"))
    trouble: str = ""

    def whole(self, posed: Sequence[Posed]) -> bool:
        """Whether the cells ran and every exercise was observed."""
        names = [item.exercise.id for item in posed]
        return self.ran and all(name in self.answers and self.answers[name].complete for name in names)


def attempt(
    parent: WarmParent,
    submission: Submission,
    posed: Sequence[Posed],
    limits: wire.Limits,
    cell_seconds: float,
    case_seconds: float,
) -> Attempt:
    """Run a submission's cells in a new child and observe the exercises, until it ends or all are observed.

    Raises ParentFailed where the warm parent itself is gone; its handle is of no use then.
    """
    made = Attempt()
    line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with line:
        with theirs:
            parent.begin(submission.assignment, limits, theirs)
        talk = _Talk(line, time.monotonic() + limits.seconds + GRACE_SECONDS)
        try:
            _converse(talk, made, submission.cells, posed, cell_seconds, case_seconds)
        except wire.Closed:
            pass
        except wire.WireError as error:
            made.trouble = str(error)
        whole = made.whole(posed) and not made.trouble
        parent.stop(hung_up=not whole and not made.trouble)
        if not whole:  # of a whole one nobody asks how it ended, and that takes time
            made.ended = parent.ended()
    return made


@dataclass
class _Talk:
    """The conversation with a child: each answer must repeat the token of its question, and come in time."""

    line: socket.socket
    end: float
    left: int = MAX_SEEN

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
    made: Attempt,
    cells: Sequence[Cell],
    posed: Sequence[Posed],
    cell_seconds: float,
    case_seconds: float,
) -> None:
    sources = tuple(cell.source for cell in cells)
    ran = talk.ask(wire.Run(_token(), sources, cell_seconds), wire.Ran)
    made.ran, made.stopped, made.starved = True, ran.stopped, ran.starved
    for item in posed:
        started = time.monotonic()
        answer = made.answers[item.exercise.id] = Answered()
        for _ in _observed(talk, answer, item, case_seconds):
            answer.seconds = time.monotonic() - started
        answer.seconds = time.monotonic() - started
        answer.complete = True


def _observed(talk: _Talk, answer: Answered, item: Posed, seconds: float) -> Iterator[None]:
    exercise = item.exercise
    tried = talk.ask(wire.Try(_token(), exercise.id, exercise.lesson, exercise.call, seconds), wire.Tried)
    answer.attempted, answer.problem = tried.attempted, tried.problem[:MAX_TEXT]
    yield
    if not tried.attempted or tried.problem:
        return
    for number, (name, given) in enumerate(item.cases, 1):
        seed = secrets.randbelow(2**31)  # not the cases' own
        seen = talk.ask(wire.Observe(_token(), name, given, seed, seconds, number == len(item.cases)), wire.Seen)
        talk.left -= len(seen.seen)
        answer.seen.append(_decoded(seen.seen) if talk.left >= 0 else Raised("TooLarge", TOO_MUCH))
        answer.warnings |= dict.fromkeys(text[:MAX_TEXT] for text in seen.warnings[:10])
        answer.changed |= dict.fromkeys(name[:MAX_TEXT] for name in seen.changed[:10])
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


def _token() -> bytes:
    return secrets.token_bytes(16)
