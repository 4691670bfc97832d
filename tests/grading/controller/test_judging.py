"""From the bytes of an observation to a verdict."""

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from course_utils.checks import examine
from course_utils.checks.data import Raised, TimedOut, encode
from course_utils.checks.registry import exercise_called
from course_utils.grading.controller import bounds, judging, orders
from tests.grading.controller.questions import CASES, POSED, RIGHT, SLOPE, seen

ITEM = POSED[1]


def judged(observed: tuple[bytes | None, ...], seconds: float = 20.0) -> orders.Verdict | orders.Failed:
    return judging.judge(orders.Judge(ITEM, observed, (), seconds))


def test_what_was_told_otherwise_is_a_flag() -> None:
    order = orders.Judge(ITEM, seen(ITEM, RIGHT[SLOPE]), (), 20.0, ({"passes": 7},))
    found = judging.judge(order)
    assert isinstance(found, orders.Verdict)
    assert found.outcome == "correct"
    assert "the observer told of 7 passes" in found.flags[0]


def test_what_was_observed_is_judged() -> None:
    # Its passes are observed for the debrief, which is the notebook's: no point rests on them.
    assert judged(seen(ITEM, RIGHT[SLOPE])) == orders.Verdict("correct", 1.0, (), (), (), observed=())
    wrong = judged((encode(Raised("ValueError", "no")),) * CASES)
    assert isinstance(wrong, orders.Verdict)
    assert (wrong.outcome, wrong.score) == ("error", 0.0)
    assert "Your code raised ValueError: no" in wrong.messages[0]


def test_a_message_has_a_length_that_a_page_can_hold() -> None:
    long = judged((encode(Raised("ValueError", "x" * 2 * judging.MAX_MESSAGE)),) * CASES)
    assert isinstance(long, orders.Verdict)
    assert len(long.messages[0]) == judging.MAX_MESSAGE


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"\xc1", "what came is no observation: "),
        (encode([1]), "what came is no observation: it is of type list"),
        (b"\x91" * 100 + b"\xc0", "what came is no observation: values within values, deeper than 64"),
        (encode({"value": 8})[:-1], "what came is no observation: "),
    ],
)
def test_what_is_no_observation_is_told(message: bytes, why: str) -> None:
    found = judged((message,) * CASES)
    assert isinstance(found, orders.Failed)
    assert found.how == "crashed"
    assert found.why.startswith(why)


def test_numbers_as_keys_are_refused_before_anything_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes] = []

    def decode(message: bytes) -> object:
        decoded.append(message)
        return real(message)

    real = judging.decode
    monkeypatch.setattr(judging, "decode", decode)
    message = msgspec.msgpack.encode({"value": {(2**61 - 1) * number: 0 for number in range(8)}})
    found = judged((message,) * CASES)
    assert found == orders.Failed("crashed", "what came is no observation: a key that is no text")
    assert message not in decoded


def test_too_much_is_an_answer_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_VALUES", 100)
    for large in (encode({"value": [0] * 100}), None):
        found = judged((large,) * CASES)
        assert isinstance(found, orders.Verdict)
        assert f"Your code raised TooLarge: {judging.TOO_MUCH}" in found.messages[0]


def test_cases_may_be_missing_after_one_that_ran_out_of_time_alone() -> None:
    right = seen(ITEM, RIGHT[SLOPE])
    late = judged((encode(TimedOut(5.0)),))
    assert isinstance(late, orders.Verdict)
    assert "still running after 5 seconds" in late.messages[0]
    assert judged(right[:-1]) == orders.Failed(
        "crashed", f"what came is no observation: it has {CASES - 1} cases of {CASES}"
    )
    assert isinstance(judged(()), orders.Failed)


def test_a_judge_that_lacks_memory_is_no_bug_of_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    greedy = replace(exercise_called(SLOPE), judge=lambda case, seen: bytearray(2**62))
    monkeypatch.setattr(judging, "exercises_of", lambda lesson: [greedy])
    found = judged(seen(ITEM, RIGHT[SLOPE]))
    assert found == orders.Failed("memory", "to judge what was observed takes too much memory.")


@pytest.mark.parametrize(
    ("judge", "how", "why"),
    [
        (lambda *given: [0 for _ in iter(int, 1)], "timeout", "what was observed could not be judged in time."),
        (lambda *given: bytearray(2**62), "memory", "to judge what was observed takes too much memory."),
    ],
)
def test_a_judge_that_does_not_end_or_fills_memory_is_stopped(
    judge: Callable[..., object], how: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examine, "judge", judge)
    assert judged(seen(ITEM, RIGHT[SLOPE]), 0.05) == orders.Failed(how, why)
