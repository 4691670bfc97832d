"""The conversation with a child: here a thread that says what a test wants."""

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from course_utils.checks.data import TimedOut, encode
from course_utils.grading import wire
from course_utils.grading.controller import conversation
from course_utils.grading.controller.conversation import Answered, Said, Seconds, converse
from course_utils.grading.submission import Cell
from tests.grading.controller.questions import CASES, FIRST, POSED, SLOPE

Answer = Callable[[wire.Request], msgspec.Struct | None]


def honest(request: wire.Request) -> msgspec.Struct:
    if isinstance(request, wire.Run):
        return wire.Ran(request.token, stopped=(1,))
    if isinstance(request, wire.Try):
        return wire.Tried(request.token, True)
    return wire.Seen(request.token, encode({"value": 8}), ("careful",) * 2)


def said(answer: Answer, seconds: float = 5.0) -> Said:
    """Return what a child said that answers so, and hangs up where it has no answer."""
    here, there = socket.socketpair()

    def serve() -> None:
        with there:
            try:
                socket.recv_fds(there, 1, 1)  # the line of events
                while (reply := answer(wire.receive(there, wire.Request))) is not None:
                    wire.send(there, reply)
            except wire.Closed:
                pass

    thread = threading.Thread(target=serve)
    thread.start()
    with here:
        heard: dict[str, Answered] = {}
        found = converse(
            here,
            (Cell(1, "import torch"), Cell(3, "slope = torch.grad")),
            POSED,
            Seconds(1.0, 1.0, time.monotonic() + seconds),
            lambda item, answer: heard.update({item.exercise.id: answer}),
        )
    thread.join()
    assert heard == {name: answer for name, answer in found.answers.items() if answer.complete}
    return found


def test_all_that_is_asked_is_answered() -> None:
    found = said(honest)
    assert found.whole
    assert not found.trouble
    assert found.ran is not None
    assert found.ran.stopped == (1,)
    assert list(found.answers) == [FIRST, SLOPE]
    slope = found.answers[SLOPE]
    assert (slope.complete, slope.attempted, slope.warnings) == (True, True, ("careful",))
    assert slope.seen == (encode({"value": 8}),) * CASES


def test_of_a_child_that_goes_what_it_said_is_kept() -> None:
    def goes(request: wire.Request) -> msgspec.Struct | None:
        return None if isinstance(request, wire.Try) and request.exercise == SLOPE else honest(request)

    found = said(goes)
    assert (found.whole, found.trouble) == (False, "")
    assert found.answers[FIRST].complete
    assert found.answers[SLOPE] == conversation.Answered(0.0)


def test_what_is_not_attempted_is_not_observed() -> None:
    asked = []

    def untouched(request: wire.Request) -> msgspec.Struct:
        asked.append(type(request))
        return wire.Tried(request.token, False) if isinstance(request, wire.Try) else honest(request)

    found = said(untouched)
    assert found.whole
    assert asked == [wire.Run, wire.Try, wire.Try]
    assert not found.answers[FIRST].attempted


def test_how_the_cell_of_an_answer_ended_is_kept_with_it() -> None:
    def failing(request: wire.Request) -> msgspec.Struct:
        if isinstance(request, wire.Run):
            assert request.sources == ("import torch", "slope = torch.grad")
            return wire.Ran(request.token, raised=((1, "AttributeError: no grad"),))
        return wire.Tried(request.token, False)

    found = said(failing)
    assert found.answers[FIRST].fault == ""
    assert found.answers[SLOPE].fault == "Cell 3, where the answer stands, raised an error: AttributeError: no grad"


@pytest.mark.parametrize(
    "raised", [((5000, "E"),), ((-1, "E"),), ((0, "E" * 301),), ((0, "E"),) * 201, (("0", "E"),), ((0, b"E"),)]
)
def test_exceptions_without_bounds_are_no_message(raised: tuple[Any, ...]) -> None:
    found = said(lambda it: wire.Ran(it.token, raised=raised) if isinstance(it, wire.Run) else honest(it))
    assert found.trouble.startswith("what came is no message: Expected ")


def test_after_a_case_that_ran_out_of_time_no_other_is_asked() -> None:
    def slow(request: wire.Request) -> msgspec.Struct:
        return wire.Seen(request.token, encode(TimedOut(1.0))) if isinstance(request, wire.Observe) else honest(request)

    found = said(slow)
    assert found.whole
    assert found.answers[SLOPE].seen == (encode(TimedOut(1.0)),)


def test_observations_are_limited_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "MAX_SEEN", len(encode({"value": 8})))
    found = said(honest)
    assert found.answers[FIRST].seen == (encode({"value": 8}),)
    assert found.answers[SLOPE].seen == (None,) * CASES


@pytest.mark.parametrize(
    "cells", [{"stopped": (-1,)}, {"starved": (-9,)}, {"stopped": (10**18,)}, {"starved": (5000,)}]
)
def test_numbers_of_cells_that_no_notebook_has_are_no_message(cells: dict[str, tuple[int, ...]]) -> None:
    found = said(lambda it: wire.Ran(it.token, **cells) if isinstance(it, wire.Run) else honest(it))
    assert found.trouble.startswith("what came is no message: Expected `int`")
    assert found.ran is None


@pytest.mark.parametrize(
    "reply",
    [
        lambda it: wire.Seen(it.token, encode({}), ("x",) * 11),
        lambda it: wire.Seen(it.token, encode({}), changed=("x" * 4001,)),
        lambda it: wire.Seen(it.token + b"x", encode({})),
    ],
)
def test_long_texts_and_many_are_no_message(reply: Answer) -> None:
    found = said(lambda it: reply(it) if isinstance(it, wire.Observe) else honest(it))
    assert found.trouble.startswith("what came is no message: Expected ")
