"""Numbers as text."""

import math

import pytest

from course_utils.graph import digits


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (3.0, "3"),
        (-0.0, "0"),
        (0.5, "0.5"),
        (0.92874, "0.9287"),
        (1 / 3, "0.3333"),
        (12345.0, "12345"),
        (123456.0, "1.235e+05"),
        (1e-9, "1e-09"),
        (7, "7"),
        (True, "True"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (1 - 2j, "1-2j"),
    ],
)
def test_short(number, text):
    assert digits.short(number) == text


@pytest.mark.parametrize("number", [1.0625, 0.09375, 3.00005, 0.5, 1.0, 41.0, 16384.0])
def test_rounding_decides_no_digit(number):
    """What another processor may make of an exact number is shown as the same text."""
    moved = [number * (1 + way * 2e-7) for way in (-1, 0, 1)]
    assert {digits.short(one) for one in moved} == {digits.short(number)}


def test_small_numbers_of_a_tensor_have_fewer_digits():
    assert digits.listed([[-0.004323, 0.30971], [1.0, 0.0]]) == "[[-0.0043, 0.3097], [1, 0]]"
    assert digits.listed([1.0, 3e-8, 0.0, math.nan]) == "[1, \u22480, 0, nan]"
    assert digits.listed([1000.0, 3.71, 1e-3, 9e-4]) == "[1000, 3.7, 0.001, \u22480]"
    assert digits.listed([1, True]) == "[1, True]"
    assert digits.listed(2.5) == "2.5"


def test_a_table_has_columns():
    assert digits.table([[1.0, -2.5], [30.0, 4.0]]) == ("[   1 -2.5]", "[  30    4]")
    assert digits.table([1.0, 2.0]) == ("[1 2]",)
    assert digits.flat([[1, 2], [3]]) == [1, 2, 3]
