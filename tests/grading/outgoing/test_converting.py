"""Markdown that takes a converter long, in a process that ends."""

import time

import pytest

from course_utils.grading.outgoing import converting
from course_utils.grading.outgoing.converting import Converter

SLOW = ("# a" + " " * 49_990 + "b", "](https://" * 4_900 + "<")  # nbconvert's heading, and the links of `inert`


@pytest.mark.parametrize("slow", SLOW, ids=["heading", "links"])
def test_what_takes_long_is_not_converted_and_the_next_notebook_is(slow):
    with Converter(seconds=0.5) as converter:
        assert converter.converted(["# A <b>"]) == ["# A < b>"]
        process = converter._process
        before = time.monotonic()
        assert converter.converted(["a", slow, "b"]) == ["a", None, None]
        assert time.monotonic() - before < 20, "seconds that no slow machine needs"
        assert converter.converted(["c", "![x](attachment:y.png)", "d\n\u00e9"]) == ["c", None, "d\n\u00e9"]
        assert converter._process is process, "to start one takes seconds"
    assert process.returncode is not None


def test_a_process_that_was_ended_is_replaced():
    with Converter() as converter:
        assert converter.converted([]) == []
        assert converter._process is None
        assert converter.converted(["a"]) == ["a"]
        converter._process.kill()
        converter._process.wait()
        assert converter.converted(["a", "b"]) == ["a", "b"]


def test_what_is_too_long_is_not_looked_at(monkeypatch):
    monkeypatch.setattr(converting, "inert", lambda text: pytest.fail("it was looked at"))
    assert converting.tried("]" * (converting.MAX_MARKDOWN + 1)) is None
