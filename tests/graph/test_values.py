"""What tensors hold, as plain data and as text."""

import pytest
import torch

from course_utils.graph import values
from course_utils.graph.values import Value, value_of


def test_small_tensors_are_kept_whole_and_large_ones_by_their_range():
    assert value_of(torch.tensor(2.0, requires_grad=True)) == Value((), 2.0)
    assert value_of(torch.arange(4).reshape(2, 2)) == Value((2, 2), [[0, 1], [2, 3]])
    assert value_of(torch.arange(16)) == Value((16,), list(range(16)))
    assert value_of(torch.linspace(-1, 1, 17)) == Value((17,), None, -1.0, 1.0)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(3, device="meta"),
        torch.zeros(20, device="meta"),
        torch.eye(3).to_sparse(),
        torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
        torch.zeros(20, dtype=torch.complex64),
    ],
)
def test_tensors_without_numbers_to_read(tensor):
    assert value_of(tensor) is None


def test_texts():
    few, many, large = Value((2,), [1.0, 2.5]), Value((5,), [1.0, 2.0, 3.0, 4.0, 5.0]), Value((64, 10), None, -0.9, 0.8)
    assert [values.in_line(value) for value in (few, many, large)] == ["[1, 2.5]", "", ""]
    assert values.whole(many) == "= [1, 2, 3, 4, 5]"
    assert values.whole(large) == "(64, 10) from -0.9 to 0.8"
    assert values.extent(many) == "1 to 5"
    assert values.extent(Value((0,), [])) == "no numbers"
    assert values.extent(Value((2,), [1j, 2j])) == "complex numbers"


def test_rows_of_a_picture():
    assert values.in_rows((), 2.0) == ("2",)
    assert values.in_rows((2, 2), [[1.0, 2.0], [3.0, 40.0]]) == ("[ 1  2]", "[ 3 40]")
    assert values.in_rows((7,), [0.0] * 7) == (), "too wide"
    assert values.in_rows((1, 2, 2), [[[1.0, 2.0], [3.0, 4.0]]]) == (), "not flat"
    assert values.in_rows((0,), []) == ()
    assert values.in_rows((64, 10), None) == ()
