"""The line of events, with both of its ends."""

import contextlib
import os
import socket
import time
from collections.abc import Iterator

import pytest

from course_utils.grading.controller.events import FORGED, MAX_KINDS, ROOM, Events
from course_utils.grading.sandbox.events import Teller

TOKEN, OTHER = b"a" * 16, b"b" * 16


@pytest.fixture
def ends() -> Iterator[tuple[Events, Teller]]:
    here, there = socket.socketpair()
    with here, there:
        events = Events(here)
        teller = Teller(there)
        yield events, teller
        events.close()
        os.close(teller._line)


def test_events_are_counted_for_their_case(ends: tuple[Events, Teller]) -> None:
    events, teller = ends
    teller.begin(TOKEN)
    for what in ("passes", "runs of copies", "passes"):
        teller.tell(what)
    assert events.of_case(TOKEN) == {"passes": 2, "runs of copies": 1}
    teller.begin(OTHER)
    assert events.of_case(OTHER) == {}
    teller.tell("passes")
    assert events.of_case(OTHER) == {"passes": 1}


@pytest.mark.parametrize(
    "forged",
    [
        f"{TOKEN.hex()} 1 passes",  # a number for the second time
        f"{TOKEN.hex()} 3 passes",  # one is missing
        f"{TOKEN.hex()} -2 passes",
        f"{TOKEN.hex()} 99999999999999999999 passes",
        f"{OTHER.hex()} 2 passes",
        f"{TOKEN.hex()} 2 {'x' * 50}",
        f"{TOKEN.hex()} 2",
        f"{TOKEN.hex()} 2 \x1b[31m",
        "\xff\x00",
    ],
)
def test_what_no_observer_tells_is_seen(ends: tuple[Events, Teller], forged: str) -> None:
    events, teller = ends
    teller.begin(TOKEN)
    teller.tell("passes")
    os.write(teller._line, f"{forged}\n".encode("latin-1"))
    assert events.of_case(TOKEN)[FORGED] == 1


def test_who_tells_without_end_fills_the_line_and_no_more(ends: tuple[Events, Teller]) -> None:
    events, teller = ends
    teller.begin(TOKEN)
    for _ in range(40_000):
        teller.tell("passes")
    assert 10_000 < events.of_case(TOKEN)["passes"] <= ROOM // 34


@pytest.mark.parametrize("flood", [b"\n", b"x\n", b"\r", b"\x0b\x1c"])
def test_a_flood_of_what_is_no_event_costs_no_look_at_each(ends: tuple[Events, Teller], flood: bytes) -> None:
    events, teller = ends
    teller.begin(TOKEN)
    teller.tell("passes")
    os.set_blocking(teller._line, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(teller._line, flood * 4096)
    before = time.thread_time()
    found = events.of_case(TOKEN)
    assert time.thread_time() - before < 0.1, "a look at each of a million takes several times as long"
    assert found[FORGED] >= 1
    assert events.of_case(TOKEN) == {}


def test_a_child_that_closes_its_end_is_not_waited_for() -> None:
    here, there = socket.socketpair()
    with here, there:
        events = Events(here)
        os.close(Teller(there)._line)
        assert events.of_case(TOKEN) == {}
        events.close()


def test_kinds_without_end_are_no_observers(ends: tuple[Events, Teller]) -> None:
    events, teller = ends
    teller.begin(TOKEN)
    for number in range(100):
        teller.tell(f"kind {number}")
    found = events.of_case(TOKEN)
    assert len(found) <= MAX_KINDS + 1
    assert found[FORGED] > 70
