"""Which points rest on what was observed."""

import pytest

from course_utils.checks.data import Array, Case, Raised, TimedOut
from course_utils.checks.examine import judge, observe
from course_utils.checks.guard import guarded
from course_utils.checks.registry import exercises, observer_for
from course_utils.grading.controller.resting import noting, observed
from tests.answers import RIGHT

ARRAY = Array((), "float32", bytes(4))

# Of one exercise of each kind what its points rest on that no number proves.
EXPECTED = {
    "saliency": ("recorded", "runs", "passes", "changed", "images", "kept", "labels", "mode"),
    "one_pass": ("passes", "kept", "recorded", "moved", "left"),
    "vjp_matmul": ("passes", "tangents", "changed", "other", "graded", "switched off", "switched on"),
    "first_gradient": (),
    "predict_gradients": (),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_exercise_rests_on(name: str) -> None:
    exercise = exercises()[name]
    with guarded(1):
        cases = list(exercise.cases(7))
        pairs = noting((case, observe(observer_for(exercise), RIGHT[name][0], case, 3, 20)[0]) for case in cases)
        assert judge(exercise, pairs).outcome == "correct"
    assert set(observed(pairs)) == set(EXPECTED[name])


def test_what_is_not_read_is_not_named_and_numbers_prove_themselves() -> None:
    seen = {"value": 3, "runs": 1, "numbers": {"a": [ARRAY]}, "rates": [0.5], "unread": 2, "kept": False}
    pairs = noting([(Case(""), seen), (Case(""), Raised("E", "")), (Case(""), TimedOut(1.0))])
    assert observed(pairs) == ()
    read = pairs[0][1]
    for name in ("value", "runs", "numbers", "rates"):
        read[name]
    assert read.get("kept") is False
    assert read.get("absent") is None
    assert observed(pairs) == ("runs", "kept")


def test_who_goes_through_an_observation_reads_all_of_it() -> None:
    pairs = noting([(Case(""), {"runs": 1}), (Case(""), {"kept": 2})])
    assert list(pairs[0][1].items()) == [("runs", 1)]
    assert list(pairs[1][1].values()) == [2]
    assert observed(pairs) == ("runs", "kept")
