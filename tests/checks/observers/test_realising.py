"""What an answer returns is read at once."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from fractions import Fraction

import pytest
import torch

from course_utils.checks.observers.realising import realised, realising


class Row(Sequence):
    def __init__(self, log: list[int]) -> None:
        self.log = log

    def __len__(self) -> int:
        return 2

    def __getitem__(self, number: int) -> int:
        self.log.append(number)
        return number * 10


class Table(Mapping):
    def __init__(self, log: list[int]) -> None:
        self.log = log

    def __len__(self) -> int:
        return 1

    def __iter__(self):
        return iter(["a"])

    def __getitem__(self, name: str) -> Row:
        return Row(self.log)


class Late(float):
    def __float__(self) -> float:
        return 2.5


def test_what_would_be_computed_later_is_computed_now() -> None:
    log: list[int] = []
    answer = realising(lambda: ({"rows": Table(log)}, Late(1.0), Fraction(1, 2)))
    assert answer() == ({"rows": {"a": [0, 10]}}, 2.5, 0.5)
    assert log == [0, 1]
    assert [type(item) for item in answer()] == [dict, float, float]


@pytest.mark.parametrize(
    "value", [None, 1.0, "text", [1, [2.0]], (torch.ones(2), {"a": 1}), OrderedDict(b=2), torch.Size([1]), print, Row]
)
def test_what_is_there_already_stays_the_same_object(value) -> None:
    assert realising(lambda: value)() is value
    assert realised([value])[0] is value


def test_no_function_is_left_alone() -> None:
    assert realising(3) == 3
    assert realising(Row) is Row
