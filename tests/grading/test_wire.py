"""Messages between processes: what is none is refused, without reading or keeping too much."""

import contextlib
import random
import socket
import threading
import time
from collections.abc import Callable

import msgspec
import pytest

from course_utils.grading import wire


def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair()


def received(sent: bytes, close: bool = True) -> object:
    here, there = pair()
    with here, there:
        thread = threading.Thread(target=lambda: (there.sendall(sent), close and there.shutdown(socket.SHUT_WR)))
        thread.start()
        try:
            return wire.receive(here, wire.Seen, 0.3)
        finally:
            thread.join()


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def test_messages_arrive_as_they_were() -> None:
    message = wire.Seen(b"token", b"\x80", ("a warning",), ())
    here, there = pair()
    with here, there:
        wire.send(there, message)
        assert wire.receive(here, wire.Seen, 1) == message
        request = wire.Observe(b"t", "case", b"\x80", 1, 5.0, True)
        wire.send(there, request)
        assert wire.receive(here, wire.Request, 1) == request


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"\xff\xff\xff\xff", "4,294,967,295 bytes"),
        (framed(b"\xc1"), "no message"),
        (framed(msgspec.msgpack.encode([1, 2])), "no message"),
        (framed(b"\x91" * 100_000), "no message"),
        (framed(b"x" * 10)[:6], "is gone"),
        (b"", "is gone"),
    ],
)
def test_what_is_no_message_is_refused(sent: bytes, said: str) -> None:
    with pytest.raises(wire.WireError, match=said):
        received(sent)


def test_silence_is_not_waited_for() -> None:
    with pytest.raises(wire.WireError, match="in time"):
        received(framed(b"x" * 10)[:6], close=False)


def test_a_thousand_corrupted_messages_raise_nothing_else() -> None:
    generator = random.Random(5)
    whole = msgspec.msgpack.encode(wire.Seen(b"token", b"\x80" * 20, ("a warning", "another"), ("a name",)))
    here, there = pair()
    with here, there:
        for _ in range(1000):
            body = bytearray(whole)
            for _ in range(generator.randint(1, 6)):
                body[generator.randrange(len(body))] = generator.randrange(256)
            there.sendall(framed(bytes(body)))
            with contextlib.suppress(wire.WireError):
                assert isinstance(wire.receive(here, wire.Seen, 1), wire.Seen)


def test_sending_to_nobody_is_noticed() -> None:
    here, there = pair()
    there.close()
    with here, pytest.raises(wire.Closed):
        wire.send(here, wire.Ran(b"t"), 1)


def asked(reply: Callable[[wire.Run], wire.Ran] | None, early: wire.Ran | None = None) -> wire.Ran:
    """Ask one who replies so, or says nothing; and who said something `early`."""
    here, there = pair()
    with here, there:
        if early is not None:
            wire.send(there, early)
        if reply is not None:
            threading.Thread(target=lambda: wire.send(there, reply(wire.receive(there, wire.Run)))).start()
        return wire.ask(here, wire.Run(b"token", (), 1.0), wire.Ran, time.monotonic() + 0.5)


def test_an_answer_repeats_the_token_of_its_question() -> None:
    assert asked(lambda question: wire.Ran(question.token, (1,))) == wire.Ran(b"token", (1,))
    with pytest.raises(wire.WireError, match="an answer came to another question"):
        asked(lambda question: wire.Ran(b"another"))


def test_what_was_said_before_it_was_asked_is_no_answer() -> None:
    with pytest.raises(wire.WireError, match="a message came that nobody asked for"):
        asked(None, early=wire.Ran(b"token"))


def test_an_answer_comes_in_time() -> None:
    with pytest.raises(wire.WireError, match="in time"):
        asked(None)
