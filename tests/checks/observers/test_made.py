"""What is made while an answer runs, as tensors or as numbers of Python's own."""

import pytest
import torch

from course_utils.checks.observers.by_hand import READ
from course_utils.checks.observers.made import EARLIER, FEW, Made


@pytest.mark.parametrize(("count", "expected"), [(FEW - 1, 0), (FEW, 1), (3 * FEW, 1)])
def test_many_numbers_that_are_read_one_by_one_are_told_once(count, expected, told) -> None:
    with Made() as made:
        mask = torch.ones(count) > 0
        kept = [bool(one) for one in mask]
    assert made.peak >= len(kept)
    assert told[READ] == expected


def test_a_write_into_memory_from_before_is_told_and_into_what_is_known_is_not(told) -> None:
    room, known = torch.zeros(2 * FEW), torch.zeros(2 * FEW)
    with Made([known]):
        known.add_(1)
        torch.zeros(2 * FEW).add_(1)
        room[:FEW] = 1  # few
        assert not told[EARLIER]
        room.copy_(torch.ones(2 * FEW))
    assert told[EARLIER] == 1
