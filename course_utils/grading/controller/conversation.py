"""What the controller and one child say to each other, while cells run there and answers are observed."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from course_utils.grading import wire
from course_utils.grading.controller.bounds import tells_of_time
from course_utils.grading.controller.events import Events
from course_utils.grading.controller.faults import fault
from course_utils.grading.controller.posing import Posed
from course_utils.grading.submission import Cell

# What one child may have observed, in bytes. The observations of all right answers of a lesson are a tenth of it.
# Empty dicts take 1 byte on the wire and 72 here: without this limit a child could fill the controller's memory.
MAX_SEEN = 4_000_000


@dataclass(frozen=True)
class Answered:
    """What was seen of one exercise, in wall seconds. Untrusted: `seen` are bytes, which a judging process decodes.

    In place of an observation that was too much stands None. `told` counts for each case what observers told at once.
    An answer that is not `complete` was being observed when the child ended, and holds nothing else. `fault` says how
    the answer's cell ended, where that raised an error or was stopped.
    """

    seconds: float
    complete: bool = False
    attempted: bool = False
    problem: str = ""
    seen: tuple[bytes | None, ...] = ()
    warnings: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    told: tuple[Mapping[str, int], ...] = ()
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
    heard: Callable[[Posed, Answered], object],
    second: bool = False,
) -> Said:
    """Have the cells run and the exercises observed, until the child is gone or all is done. Raises nothing.

    `heard` is called with each complete answer as it comes. Nothing that comes later changes it. Where this is the
    `second` child, the answers are observed in the second way.
    """
    try:
        events = Events(line)
    except OSError as error:
        return Said(None, {}, f"the line of events cannot be made: {error}")
    with closing(events):
        return _converse(_Talk(line, seconds, events), cells, posed, heard, second)


def _converse(
    talk: _Talk,
    cells: Sequence[Cell],
    posed: Sequence[Posed],
    heard: Callable[[Posed, Answered], object],
    second: bool,
) -> Said:
    ran: wire.Ran | None = None
    answers: dict[str, Answered] = {}
    try:
        ran = talk.ask(wire.Run(_token(), tuple(cell.source for cell in cells), talk.seconds.cell, second), wire.Ran)
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

    def __init__(self, line: socket.socket, seconds: Seconds, events: Events) -> None:
        self.seconds = seconds
        self.events = events
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
    seen: list[bytes | None] = []
    warnings: dict[str, None] = {}
    changed: dict[str, None] = {}
    told: list[Mapping[str, int]] = []
    for number, (name, given) in enumerate(item.cases, 1):
        if not tried.attempted or tried.problem or (seen and tells_of_time(seen[-1])):
            break
        seed = secrets.randbelow(2**31)  # not the cases' own
        observe = wire.Observe(_token(), name, given, seed, seconds, number == len(item.cases))
        found = talk.ask(observe, wire.Seen)
        told.append(talk.events.of_case(observe.token))
        talk.left -= len(found.seen)
        seen.append(found.seen if talk.left >= 0 else None)
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
        told=tuple(told),
    )


def _token() -> bytes:
    return secrets.token_bytes(16)
