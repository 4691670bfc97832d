"""The sentences in which a check says how an answer differs."""

import pytest
import torch

from course_utils.checks.compare import close, describe, listed, right_entries, right_value, told_apart
from course_utils.checks.data import Array, Other

WANTED = torch.tensor([[1.5, -2.0, 3.0], [4.0, 5.0, 6.0]])


def message(received, expected=WANTED):
    finding = right_value(received, expected, "Your gradient")
    assert finding.ok == (not finding.message)
    return finding.message


def test_right_values():
    assert message(Array.of(WANTED)) == ""
    assert message(Array.of(WANTED * (1 + 1e-6))) == ""
    assert message(Array.of(WANTED.double()), WANTED.double()) == ""
    assert message(Array.of(torch.zeros(0)), torch.zeros(0)) == ""


@pytest.mark.parametrize("scalar", [8, 8.0, Array.of(torch.tensor(8.0)), Array.of(torch.tensor(8))])
def test_a_number_in_any_form_is_right(scalar):
    assert message(scalar, 8.0) == ""


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        (None, "Your gradient is None; expected a tensor of shape (2, 3)."),
        (2.0, "Your gradient is the number 2; expected a tensor of shape (2, 3)."),
        (True, "Your gradient is True; expected a tensor of shape (2, 3)."),
        ("abc", "Your gradient is the text 'abc'; expected a tensor of shape (2, 3)."),
        ([1, 2], "Your gradient is a list or tuple with 2 entries; expected a tensor of shape (2, 3)."),
        (Other("function"), "Your gradient is something of type function; expected a tensor of shape (2, 3)."),
        (Other("..."), "Your gradient is still `...`; expected a tensor of shape (2, 3)."),
        (Array.of(WANTED.T), "Your gradient has shape (3, 2); expected (2, 3)."),
        (Array.of(WANTED.double()), "Your gradient has dtype float64; expected float32."),
        (Array.of(WANTED.int()), "Your gradient has dtype int32; expected float32."),
        (
            Array.of(WANTED * 2),
            "Your gradient is 2 times the right one: at [0, 0] yours is 3, the right one is 1.5.",
        ),
        (
            Array.of(-WANTED),
            "Your gradient is -1 times the right one: at [0, 0] yours is -1.5, the right one is 1.5.",
        ),
        (
            Array.of(WANTED / 24),
            "Your gradient is 1/24 times the right one: at [0, 0] yours is 0.0625, the right one is 1.5.",
        ),
        (
            Array.of(-WANTED / 7),
            "Your gradient is -1/7 times the right one: at [0, 0] yours is -0.214286, the right one is 1.5.",
        ),
        (
            Array.of(WANTED.flip(0)),
            "Your gradient has the right numbers, but not each in its place: at [0, 0] yours is 4, the right one is "
            "1.5.",
        ),
        (Array.of(WANTED * 0), "Your gradient is zero everywhere: at [0, 0] yours is 0, the right one is 1.5."),
    ],
)
def test_messages(received, expected):
    assert message(received) == expected


def test_first_difference_and_nan_are_placed():
    wrong = WANTED.clone()
    wrong[1, 2] = 7
    assert (
        message(Array.of(wrong)) == "Your gradient differs in 1 of 6 numbers: at [1, 2] yours is 7, the right one is 6."
    )
    wrong[0, 1] = float("nan")
    assert "holds NaN where the right one is a number: at [0, 1] yours is nan" in message(Array.of(wrong))


def test_an_infinite_number_makes_no_other_one_right():
    wanted = torch.tensor([2.0, float("inf"), -3.0])
    assert message(Array.of(wanted), wanted) == ""
    assert "at [0] yours is 1, the right one is 2" in message(Array.of(torch.tensor([1.0, float("inf"), -3.0])), wanted)
    assert message(Array.of(torch.tensor([2.0, 7.0, -3.0])), wanted)
    assert not close(Array.of(torch.tensor([1.0, float("inf"), -3.0])), wanted)


def test_tolerance_follows_the_dtype():
    exact = WANTED.double()
    assert message(Array.of(exact * (1 + 1e-5)), exact) != ""
    assert message(Array.of(exact * (1 + 1e-9)), exact) == ""
    assert message(Array.of(WANTED * (1 + 1e-3))) != ""


def test_a_python_number_is_as_precise_as_the_tensor_that_is_expected():
    third = torch.tensor(1 / 3)
    assert message(1 / 3 + 1e-7, third) == ""  # added up in float32
    assert message(1 / 3 + 1e-3, third) != ""
    assert message(1 / 3 + 1e-6, 1 / 3) != ""


def test_small_numbers_are_compared_in_their_places_by_their_own_size():
    small = torch.tensor([1e-7, 3e-7, 0.0])
    assert "not each in its place" not in message(Array.of(small + torch.tensor([0.0, 0.0, 9e-7])), small)
    assert "not each in its place" in message(Array.of(small.flip(0)), small)


def test_a_rounding_residue_where_the_exact_number_is_zero_does_not_decide():
    """Found in backward_engine: a key's bias has the gradient 0, beside others of 0.07 to 0.2."""
    gradient = torch.tensor([0.18532, 2.18861e-08, 5.804e-06])
    other = torch.tensor([0.18532, -1.95112e-07, 5.2e-06])
    assert message(Array.of(other), gradient) == ""
    assert message(Array.of(gradient + torch.tensor([0.0, 1e-4, 0.0])), gradient) != ""
    small = gradient / 1e3  # it is the size of the others that counts
    assert message(Array.of(other / 1e3), small) == ""
    assert message(Array.of(small + torch.tensor([0.0, 1e-6, 0.0])), small) != ""


def test_close_needs_shape_and_numbers():
    assert close(Array.of(WANTED), WANTED)
    assert close(3, torch.tensor(3.0))
    assert not close(Array.of(WANTED.T), WANTED)
    assert not close(None, WANTED)
    assert not close(Array.of(WANTED), WANTED * 2)


def entries(received):
    return [finding.message for finding in right_entries(received, {"a": True, "b": 2.5, "c": "Mul"}, "Your dict")]


def test_right_entries():
    assert entries({"a": True, "b": 2.5, "c": "Mul"}) == [""]
    assert entries({"a": True, "b": Array.of(torch.tensor(2.5)), "c": "Mul"}) == [""]


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        (None, "Your dict is None; expected a dict with the keys a, b and c."),
        ({"a": True}, "Your dict has no entry for b and c."),
        ({"a": 1, "b": 1, "c": 1, "d": 1}, "Your dict has entries that nobody asked for: d."),
        ({"a": True, "b": Other("..."), "c": "Mul"}, "Your dict still holds `...` for b."),
        ({"a": 1, "b": 2.5, "c": "Mul"}, "2 of 3 entries are right."),
        ({"a": False, "b": None, "c": Array.of(WANTED)}, "0 of 3 entries are right."),
    ],
)
def test_wrong_entries(received, expected):
    assert entries(received) == [expected]


def test_the_wrong_entries_are_withheld_and_the_share_is_told():
    (finding,) = right_entries({"a": False, "b": 2.5, "c": "Sub"}, {"a": True, "b": 2.5, "c": "Mul"}, "Your dict")
    assert finding.message == "1 of 3 entries is right."
    assert finding.withheld == "Look again at a and c."
    assert finding.share == pytest.approx(1 / 3)


def test_a_table_that_is_turned_round_is_told_so():
    right = {"a": True, "b": False}
    (turned,) = right_entries({"a": False, "b": Array.of(torch.tensor(True))}, right, "Your dict")
    assert turned.message == (
        "0 of 2 entries are right. Every True and every False is turned round: what does True stand for?"
    )
    (other,) = right_entries({"a": False, "b": 1}, right, "Your dict")
    assert other.message == "0 of 2 entries are right. Each is True or False; yours for b is the number 1."


def test_numbers_are_written_until_they_differ():
    assert told_apart(3.0, 6.0) == ("3", "6")
    assert told_apart(7.27312, 7.273124) == ("7.273120", "7.273124")
    assert told_apart(1.0, float("nan")) == ("1", "nan")
    near = torch.tensor(7.27312, dtype=torch.float64)
    assert "yours is 7.273120, the right one is 7.273124." in message(Array.of(near), near + 4e-6)


def test_words():
    assert listed([]) == "nothing"
    assert listed("ab") == "a and b"
    assert describe(Array.of(torch.tensor(1))) == "a tensor of shape () and dtype int64"


def test_a_factor_that_shows_as_one_is_not_named():
    found = right_value(Array.of(WANTED.double() * (1 + 1e-8)), WANTED.double(), "Your gradient")
    assert not found.ok
    assert " times " not in found.message
    assert "by less than a millionth of the largest: " in found.message


def test_small_differences_are_put_down_to_float32_only_where_its_numbers_came():
    right = torch.tensor(1 / 3, dtype=torch.float64)
    assert "is wrong, by less than a millionth: " in message(Array.of(right + 1e-8), right)
    assert "is wrong, by no more than float32 would round: " in message(Array.of(right.float().double()), right)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_in_half_precision_a_spacing_is_rounding_and_five_are_not(dtype: torch.dtype) -> None:
    right = torch.ones(3, dtype=dtype)
    spacing = torch.finfo(dtype).eps
    assert right_value(Array.of(right + spacing), right, "It").ok
    assert not right_value(Array.of(right + 5 * spacing), right, "It").ok
