"""Observations that are not what their observers told."""

import pytest

from course_utils.checks.data import Case, Raised
from course_utils.checks.observers.aside import REACH
from course_utils.checks.observers.by_hand import HAND, READ
from course_utils.checks.observers.nodes import CALLED
from course_utils.checks.observers.passes import UNCOUNTED
from course_utils.checks.observers.telling import DECOY, GAGGED
from course_utils.grading.controller.contradictions import MAX_SENTENCES, contradictions
from course_utils.grading.controller.events import FORGED

CASE = Case("small")


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        ({"runs": 1}, {"runs": 1}),
        ({"runs": 1}, {"runs of copies": 1}),
        ({"runs": 3}, {"runs": 1, "runs of copies": 2}),
        ({"runs": 1}, {"runs": 1, "runs of copies": 2}),
        ({"forwards": [2, 1]}, {"forwards": 3}),
        ({"forwards": [{"of": 0}]}, {"forwards": 1}),
        ({"runs": 1}, {"passes": 5}),
        ({"passes": True}, {"passes": 5}),
        ({"passes": 0}, {}),
        (Raised("E", ""), {"runs": 7}),
    ],
)
def test_what_agrees_or_counts_nothing_is_no_contradiction(seen, told) -> None:
    assert contradictions([(CASE, seen)], [told]) == ()


@pytest.mark.parametrize(
    ("seen", "told", "words"),
    [
        ({"runs": 1}, {"runs": 2}, "told of 2 runs while the answer ran, and its observation says 1."),
        ({"forwards": [1, 1]}, {"forwards": 3}, "told of 3 forwards while the answer ran, and its observation says 2."),
        ({}, {"runs of its first part": 2, "runs begun": 1}, "first layer ran 2 times, and the module itself 1 times"),
        ({}, {"runs cut": 1, "runs begun": 1}, "a run of a module began and was broken off"),
        ({}, {HAND: 1}, "computed with a module's weights"),
        ({"passes": 1}, {"passes": 1, FORGED: 1}, "something was told in the observers' name"),
        ({"passes": 1}, {"passes": 1, UNCOUNTED: 2}, "was not started by PyTorch's own functions"),
        ({}, {CALLED: 1}, "called nodes of the graph by hand"),
        ({}, {READ: 1}, "where no operation is seen"),
        ({}, {GAGGED: 1}, "wanted to be told in place of the grader"),
        ({}, {f"{REACH}gc.get_objects": 3}, "itself brought about 'gc.get_objects'"),
        (Raised("E", ""), {DECOY: 1}, "something that only looks like an observer"),
    ],
)
def test_a_contradiction_is_said_once(seen, told, words) -> None:
    found = contradictions([(CASE, seen), (Case("other"), seen)], [told, told])
    assert len(found) == 1
    assert words in found[0]
    assert "'small'" in found[0]


def test_who_forges_what_is_told_fills_no_page() -> None:
    told = {f"kind {number}": 2 for number in range(100)}
    assert len(contradictions([(CASE, dict.fromkeys(told, 1))], [told])) == MAX_SENTENCES
