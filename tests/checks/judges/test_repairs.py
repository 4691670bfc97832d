"""The repair that helps tells what was wrong."""

import pytest

from course_utils.checks.judges.repairs import first_that_helps

REPAIRS = {"A": lambda it: it, "B": lambda it: [*it, 1], "C": lambda it: [*it, 2]}


def test_the_first_repair_that_helps_is_named():
    assert first_that_helps(list, REPAIRS, lambda it: not it) == "A"
    assert first_that_helps(list, REPAIRS, lambda it: len(it) == 1) == "B"
    assert first_that_helps(list, REPAIRS, lambda it: it == [2]) == "C"


def test_each_repair_is_tried_on_a_thing_made_anew():
    def spoil(it):
        it.append(0)
        return it

    assert first_that_helps(list, {"A": spoil, "B": lambda it: it}, lambda it: not it) == "B"


def test_no_repair_that_helps_is_an_error():
    with pytest.raises(LookupError, match="no repair helps"):
        first_that_helps(list, REPAIRS, lambda it: it == [3])
