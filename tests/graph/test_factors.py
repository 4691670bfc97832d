"""By what a node multiplied, as observed."""

import pytest
import torch
from torch import nn

from course_utils import record_backward


def factors(out, gradient=None, **names):
    """Return the factors of the first node, by input."""
    recording = record_backward(out, gradient, **names)
    event = recording.events[0]
    return [recording.factor(event, position) for position in range(len(event.sent))]


@pytest.fixture
def x():
    return torch.tensor(2.0, requires_grad=True)


@pytest.fixture
def y():
    return torch.tensor(3.0, requires_grad=True)


def test_a_factor_is_called_by_the_saved_tensor_that_gives_it(x, y):
    assert factors(x * y, x=x, y=y) == ["\u00d7 y = 3", "\u00d7 x = 2"]
    assert factors(x / y, x=x, y=y) == ["\u00d7 1/y = 0.3333", "\u00d7 -0.2222"]
    assert factors(x**2, x=x) == ["\u00d7 2\u00b7x = 4"]
    assert factors(x**3, x=x) == ["\u00d7 3\u00b7x\u00b2 = 12"]
    assert factors(x.sin(), x=x) == ["\u00d7 cos x = -0.4161"]
    assert factors(x.log(), x=x) == ["\u00d7 1/x = 0.5"]
    large = (100 * x.new_ones(()).requires_grad_()).exp()
    assert factors(large, torch.tensor(0.0), large=large) == ["\u00d7 large = inf"], "0 times infinity"
    e, s, t, r = x.exp(), x.sigmoid(), x.tanh(), x.sqrt()
    assert factors(e, e=e) == ["\u00d7 e = 7.389"]
    assert factors(s, s=s) == ["\u00d7 s(1 \u2212 s) = 0.105"]
    assert factors(t, t=t) == ["\u00d7 1 \u2212 t\u00b2 = 0.07065"]
    assert factors(r, r=r) == ["\u00d7 1/(2\u00b7r) = 0.3536"]


def test_without_a_name_there_is_the_number(x, y):
    assert factors(x * y) == ["\u00d7 3", "\u00d7 2"]
    assert factors(x - y) == ["\u00d7 1", "\u00d7 -1"]
    assert factors(x.exp(), x=x) == ["\u00d7 7.389"]


def test_equal_numbers_are_not_confused(x):
    same = torch.tensor(2.0, requires_grad=True)
    assert factors(x * same, x=x, same=same) == ["\u00d7 same = 2", "\u00d7 x = 2"]


def test_elementwise_operations_on_tensors():
    a = torch.tensor([1.0, 2.0, -3.0], requires_grad=True)
    b = torch.tensor([4.0, 0.5, 2.0])
    come = torch.tensor([1.0, 1.0, 2.0])
    assert factors(a * b, come, a=a, b=b) == ["\u00d7 b", ""]
    assert factors(a * b, come, a=a) == ["\u00d7 [4, 0.5, 2]", ""]
    assert factors(a * 5, come) == ["\u00d7 5", ""]
    assert factors(a.relu(), come) == ["\u00d7 [1, 1, 0]"]


def test_one_number_in_depends_on_each_input_by_one_factor():
    a = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    assert factors(a.sum()) == ["\u00d7 1"]
    assert factors(a.mean()) == ["\u00d7 0.25"]
    assert factors(nn.functional.mse_loss(a, torch.zeros(4)))[0] == "\u00d7 [0.5, 1, 1.5, 2]"


def test_silent_where_it_cannot_be_known(x):
    a = torch.rand(2, 2, requires_grad=True)
    w = torch.tensor(2.0, requires_grad=True)
    assert factors(a.softmax(0), torch.ones(2, 2)) == [""], "it mixes elements"
    assert factors(a @ a, torch.ones(2, 2)) == ["", ""]
    assert factors(w * a, torch.ones(2, 2), a=a)[0] == "", "a sum over elements"
    assert factors(torch.rand(9, requires_grad=True) * torch.rand(9), torch.ones(9)) == ["", ""], "too many"
    assert factors(x * 3, torch.tensor(0.0)) == ["", ""], "0 of 0"
    assert factors(x * 3, torch.tensor(float("nan"))) == ["", ""], "no name, and NaN"
    first, second = a.unbind()
    assert factors(first * 2 + second * 2, torch.ones(2)) == ["\u00d7 1", "\u00d7 1"]
    assert factors(torch.rand(20, requires_grad=True) * 2, torch.ones(20)) == ["", ""], "not recorded whole"


def test_a_zero_keeps_the_name_and_loses_the_number(x, y):
    assert factors(x * y, torch.tensor(0.0), x=x, y=y) == ["\u00d7 y", "\u00d7 x"]


@pytest.mark.parametrize("arrives", [0.0, 1.0])
def test_an_infinite_factor_is_told_by_its_rule(arrives):
    x = torch.tensor(100.0, requires_grad=True)
    y = x.exp()
    assert factors(y, torch.tensor(arrives), x=x, y=y) == ["\u00d7 y = inf"]


def test_an_infinity_among_other_factors_is_not_told():
    x = torch.tensor([100.0, 0.0], requires_grad=True)
    y = x.exp()
    assert factors(y, torch.zeros(2), x=x, y=y) == ["\u00d7 y"]


def test_no_numbers_have_no_infinite_factor():
    x = torch.ones(0, requires_grad=True)
    y = x.exp()
    assert "inf" not in factors(y, torch.ones(0), x=x, y=y)[0]


def test_a_name_that_does_not_agree_with_what_was_sent_is_not_used(x, y):
    out = x * y
    out.grad_fn.register_hook(lambda sent, _: (sent[0] * 10, sent[1]))
    assert factors(out, x=x, y=y) == ["\u00d7 30", "\u00d7 x = 2"]


def test_a_power_that_overflows_has_no_name():
    x = torch.tensor(0.0, requires_grad=True)
    assert factors(x**-1.0, x=x) == [""]
