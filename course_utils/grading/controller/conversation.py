"""What the controller and one child say to each other, while cells run there and answers are observed."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from course_utils.checks.data import Raised, TimedOut, decode
from course_utils.checks.exercise import Seen
from course_utils.grading import wire
from course_utils.grading.controller.bounds import TooMany, look
from course_utils.grading.controller.faults import fault
from course_utils.grading.controller.posing import Posed
from course_utils.grading.submission import Cell

# What one child may have observed, in bytes. The observations of all right answers of a lesson are a tenth of it.
# Empty dicts take 1 byte on the wire and 72 here: without this limit a child could fill the controller's memory.
MAX_SEEN = 4_000_000
TOO_MUCH = "the observations of this notebook are together too large to be judged"


@dataclass(frozen=True)
class Answered:
    """What was seen of one exercise, in wall seconds. Untrusted, but plain data of the expected types.

    One that is not `complete` was being observed when the child ended, and holds nothing else. `fault` says how the
    answer's cell ended, where that raised an error or was stopped.
    """

    seconds: float
    complete: bool = False
    attempted: bool = False
    problem: str = ""
    seen: tuple[Seen, ...] = ()
    warnings: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    fault: str = ""


@dataclass(frozen=True)
class Said:
    """What a child said: how its cells ran, None where it ended before, and the answers, as they were tried.

    `trouble` is how it broke the rules of the conversation, empty where it did not. It is `whole` where all was asked.
    """

    ran: wire.Ran | None
    answers: Mapping[str, Answered]
    trouble: str = ""
    whole: bool = False


@dataclass(frozen=True)
class Seconds:
    """How long a child may take: for each cell, for each case, and until `end` on the monotonic clock for all."""

    cell: float
    case: float
    end: float


def converse(
    line: socket.socket,
    cells: Sequence[Cell],
    posed: Sequence[Posed],
    seconds: Seconds,
    heard: Callable[[Posed, Answered], None],
) -> Said:
    """Have the cells run and the exercises observed, until the child is gone or all is done. Raises nothing.

    `heard` is called with each complete answer as it comes. Nothing that comes later changes it.
    """
    talk = _Talk(line, seconds)
    ran: wire.Ran | None = None
    answers: dict[str, Answered] = {}
    try:
        ran = talk.ask(wire.Run(_token(), tuple(cell.source for cell in cells), seconds.cell), wire.Ran)
        for item in posed:
            began = time.monotonic()
            try:
                answer = _answered(talk, item, began)
                answer = replace(answer, fault=fault(item.exercise, answer.attempted, cells, ran))
                answers[item.exercise.id] = answer
            except wire.WireError:
                answers[item.exercise.id] = Answered(max(talk.heard - began, 0.0))
                raise
            heard(item, answer)
    except wire.Closed:
        return Said(ran, answers)
    except wire.WireError as error:
        return Said(ran, answers, trouble=str(error))
    return Said(ran, answers, whole=True)


class _Talk:
    """The line to a child, the bytes of observations that are still taken, and when something was last heard."""

    def __init__(self, line: socket.socket, seconds: Seconds) -> None:
        self.seconds = seconds
        self.left = MAX_SEEN
        self.heard = 0.0
        self._line = line

    def ask(self, question: wire.Request, kind: type[wire.Kind]) -> wire.Kind:
        answer = wire.ask(self._line, question, kind, self.seconds.end)
        self.heard = time.monotonic()
        return answer


def _answered(talk: _Talk, item: Posed, began: float) -> Answered:
    exercise, seconds = item.exercise, talk.seconds.case
    question = wire.Try(_token(), exercise.id, exercise.name, exercise.lesson, exercise.call, seconds)
    tried = talk.ask(question, wire.Tried)
    seen: list[Seen] = []
    warnings: dict[str, None] = {}
    changed: dict[str, None] = {}
    for number, (name, given) in enumerate(item.cases, 1):
        if not tried.attempted or tried.problem or (seen and isinstance(seen[-1], TimedOut)):
            break
        seed = secrets.randbelow(2**31)  # not the cases' own
        found = talk.ask(wire.Observe(_token(), name, given, seed, seconds, number == len(item.cases)), wire.Seen)
        talk.left -= len(found.seen)
        seen.append(_decoded(found.seen) if talk.left >= 0 else Raised("TooLarge", TOO_MUCH))
        warnings |= dict.fromkeys(found.warnings)
        changed |= dict.fromkeys(found.changed)
    return Answered(
        seconds=time.monotonic() - began,
        complete=True,
        attempted=tried.attempted,
        problem=tried.problem,
        seen=tuple(seen),
        warnings=tuple(warnings),
        changed=tuple(changed),
    )


def _decoded(message: bytes) -> Seen:
    try:
        look(message)
        seen = decode(message)
    except TooMany:
        return Raised("TooLarge", TOO_MUCH)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError) as error:
        raise wire.WireError(f"what came is no observation: {error}") from error
    if not isinstance(seen, dict | Raised | TimedOut):
        raise wire.WireError(f"what came is no observation but of type {type(seen).__name__}")
    return seen


def _token() -> bytes:
    return secrets.token_bytes(16)
