"""Which entry is taken along an axis."""

import pytest
import torch

from course_utils.audit.events import Op
from course_utils.audit.sequences import Taken, taken_along

EVERY = slice(None)


def indexed(index):
    return Op("__getitem__", torch.Tensor.__getitem__, (torch.zeros(2, 3, 4), index), {}, None, 0, 0)


@pytest.mark.parametrize(
    ("index", "axis", "taken"),
    [
        (-1, 0, Taken(-1, True)),
        ((EVERY, -1), 1, Taken(-1, True)),
        ((EVERY, -1, slice(0, 2)), 1, Taken(-1, False)),
        ((EVERY, 2, EVERY), 1, Taken(2, True)),
        ((0, -1), 1, None),  # of one sample
        ((torch.arange(2), -1), 1, None),
        ((..., -1), 1, None),
        ((EVERY, slice(0, 1)), 1, None),
        (True, 0, None),
        (EVERY, 1, None),
    ],
)
def test_an_index_takes_one_entry_of_all_that_is_before_its_axis(index, axis, taken):
    assert taken_along(indexed(index), axis) == taken


def test_select_takes_all_of_one_entry():
    select = Op("select", torch.Tensor.select, (torch.zeros(2, 3), 1, -1), {}, None, 0, 0)
    assert taken_along(select, 1) == Taken(-1, True)
    assert taken_along(select, 0) is None
    assert taken_along(Op("squeeze", torch.squeeze, (torch.zeros(2, 1),), {}, None, 0, 0), 1) is None
