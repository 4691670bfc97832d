"""What may be in an observation, told from its bytes alone."""

import msgspec
import pytest

from course_utils.checks import data
from course_utils.checks.data import Array, Other, Raised, TimedOut, encode
from course_utils.grading.controller import bounds
from course_utils.grading.controller.bounds import TooMany, Unbounded, look, tells_of_time

NESTED = 300


def test_every_form_of_messagepack_is_walked_to_its_end() -> None:
    many = {f"k{number}": number for number in range(70_000)}
    for value in (
        None,
        *(True, 1.5, -1, 200, 70_000, 2**40, -200, -70_000, -(2**40), 2**63),
        *("", "x" * 31, "x" * 200, "x" * 300, "x" * 70_000),
        *([1] * 15, [1] * 300, [0] * 70_000, many, {"a": {"b": [{}]}}),
        *(b"x" * 10, b"x" * 300, b"x" * 70_000),
        *(msgspec.msgpack.Ext(1, b"x" * size) for size in (1, 2, 4, 8, 16, 3, 300, 70_000)),
    ):
        # A key that is a number, behind it: it is seen where the walk comes out right.
        look(msgspec.msgpack.encode([value]))
        with pytest.raises(Unbounded, match="a key that is no text"):
            look(msgspec.msgpack.encode([value, {1: 2}]))


def test_what_answers_hold_passes() -> None:
    array = Array((2,), "float32", b"\x00" * 8)
    look(encode({"value": [array, {"gradients": [Other("function")], "name": "w"}], "passes": 2}))


@pytest.mark.parametrize("key", [1, 1.5, None, True, b"x"])
def test_only_texts_are_keys(key: object) -> None:
    with pytest.raises(Unbounded, match="a key that is no text"):
        look(msgspec.msgpack.encode({"a": [{"b": 1, key: 2}]}))


def test_depth_and_number_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unbounded, match="deeper than 64"):
        look(b"\x91" * NESTED + b"\xc0")
    look(b"\x91" * bounds.MAX_DEPTH + b"\xc0")
    monkeypatch.setattr(bounds, "MAX_VALUES", 10)
    look(msgspec.msgpack.encode([0] * 9))
    with pytest.raises(TooMany, match="more than 10 values"):
        look(msgspec.msgpack.encode([0] * 10))


def test_a_message_that_was_cut_off_passes_to_the_decoder() -> None:
    whole = encode({"value": ["x" * 100, {"y": 1.5}]})
    for end in range(len(whole)):
        look(whole[:end])


def test_a_message_that_tells_of_time_is_known_by_its_first_bytes() -> None:
    assert data._KINDS[bounds.TIMED_OUT] is TimedOut
    assert all(tells_of_time(encode(TimedOut(seconds))) for seconds in (1.0, 0.1, 5))
    others = (Raised("E", ""), {"seconds": 1.0}, [4], 4, "\x04", None, Array((), "uint8", b"\x04" * 70_000))
    assert not any(tells_of_time(encode(other)) for other in others)
    assert not any(tells_of_time(message) for message in (None, b"", b"\xc7", b"\xc7\x01", b"\xd4"))
