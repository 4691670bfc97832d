"""The time that a submission has for all of its children."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from course_utils.grading import wire
from course_utils.grading.controller import running
from course_utils.grading.controller.conversation import Said, Seconds
from course_utils.grading.controller.making import pose
from course_utils.grading.controller.parent import Parents
from course_utils.grading.controller.running import run
from tests.grading.submissions import submission

LIMITS = wire.Limits("none", 60.0, 1_000_000)
POSED = pose("00_start_here", lambda below: 7)


@dataclass
class Clock:
    """What stands for time, a warm parent and its children: each takes so many seconds and dies."""

    takes: list[float]
    now: float = 100.0
    limits: list[wire.Limits] = field(default_factory=list)
    seconds: list[Seconds] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now

    @contextmanager
    def one(self) -> Iterator["Clock"]:
        yield self

    def begin(self, lesson: str, limits: wire.Limits) -> socket.socket:
        self.limits.append(limits)
        return socket.socketpair()[0]

    def started(self) -> None:
        self.now += 1000  # a warm parent that loads

    def converse(self, line: object, cells: object, posed: object, seconds: Seconds, *rest: object) -> Said:
        self.seconds.append(seconds)
        self.now += self.takes.pop(0)
        return Said(None, {})

    def stop(self, hung_up: bool = False) -> None:
        pass

    def ended(self) -> wire.Ended:
        return wire.Ended("died", "it ended itself with code 1")


@pytest.mark.parametrize(("first", "left"), [(1.0, 59.0), (58.0, 2.0), (59.9, 1.0), (64.0, 1.0)])
def test_a_second_child_has_what_is_left_of_the_time(
    monkeypatch: pytest.MonkeyPatch, first: float, left: float
) -> None:
    clock = Clock([first, 0.5])
    monkeypatch.setattr(running.time, "monotonic", clock.monotonic)
    monkeypatch.setattr(running, "converse", clock.converse)
    handed = submission("ada", "x = 1")
    attempt = run(handed, POSED, LIMITS, cast(Parents, clock), lambda *heard: None)
    assert [limits.seconds for limits in clock.limits] == pytest.approx([60.0, left])
    assert [limits.memory for limits in clock.limits] == [1_000_000] * 2
    assert {(seconds.cell, seconds.case) for seconds in clock.seconds} == {(10.0, 5.0)}, "a cell is not cut shorter"
    ends: Any = [seconds.end for seconds in clock.seconds]
    assert ends == pytest.approx([1100 + 65, 2100 + first + left + 5])
    assert (attempt.status, attempt.again, attempt.failed) == ("crashed", True, False)
