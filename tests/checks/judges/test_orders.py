"""Orders of lines: read in every form, complete or not, and executed."""

import pytest

from course_utils.checks.data import Other
from course_utils.checks.judges.orders import Lines

LINES = Lines({"A": "y = x + 1", "B": "x = 2", "C": "z = 1 / (x - 2)"})


@pytest.mark.parametrize("given", [["b", " A "], "BA", "b, a", "B -> A", "B\nA"])
def test_every_form_is_read_alike(given):
    assert LINES.read(given) == ["B", "A"]


@pytest.mark.parametrize("given", [None, 3, [1, 2], {"A": 1}, Other("class"), ""])
def test_what_holds_no_letters_is_told_what_is_expected(given):
    assert LINES.read(given) == []
    (finding,) = LINES.complete(given)
    assert not finding.ok
    assert finding.message.endswith("expected the letters A, B and C, each once, in a list or a text.")


def test_what_is_missing_twice_or_unknown_is_named():
    (finding,) = LINES.complete("BBD")
    assert finding.message == "Your order leaves out A and C, names B more than once and names 'D', which is no line."
    assert all(finding.ok for finding in LINES.complete("BCA"))


def test_an_order_is_executed_among_names():
    names = {"x": 0}
    assert LINES.execute(["B", "A"], names) is None
    assert names["y"] == 3


def test_a_name_that_is_not_there_yet_is_named():
    broke = LINES.execute(["A", "B"], {})
    assert LINES.told(broke) == "In your order line A, `y = x + 1`, runs before `x` is made."


def test_another_error_is_told_with_its_line():
    broke = LINES.execute(["B", "C"], {})
    assert LINES.told(broke) == "In your order line C, `z = 1 / (x - 2)`, raises ZeroDivisionError: division by zero"
