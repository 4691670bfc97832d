"""Plain data across the boundary between learner code and judges."""

from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from types import MappingProxyType

import msgspec
import numpy as np
import pytest
import torch

from course_utils.checks.data import MAX_BYTES, Array, Other, Raised, TimedOut, decode, encode, plain
from course_utils.explain.crossing import Told, ToldPlace

MEANS = Told("same-loss-twice", "twice", (ToldPlace("here", 3, "x = 1"),), "why", "fix", True)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(1.5),
        torch.arange(6).reshape(2, 3).T,
        torch.zeros(0, 3),
        torch.tensor([True, False]),
        torch.randn(2, 2, dtype=torch.float64, requires_grad=True),
        torch.randn(3).bfloat16(),
        torch.randn(3, dtype=torch.complex64).conj(),
        torch._efficientzerotensor(2, 3),
        torch.randn(4, 6)[::2, 1::2],
        torch.randn(1, 3)[:, 0].clone(),  # contiguous, and its one number has a stride of 3
    ],
)
def test_arrays_keep_shape_dtype_and_numbers(tensor):
    back = decode(encode(Array.of(tensor))).tensor()
    assert back.dtype == tensor.dtype
    assert torch.equal(back, tensor.detach())


def test_nested_values_survive():
    value = {"a": [1, 2.5, None, True, "text"], "b": {"c": Array.of(torch.ones(2)), "d": Other("function")}}
    assert decode(encode(value)) == value
    assert decode(encode(Raised("ValueError", "no", "x = 1", 3))) == Raised("ValueError", "no", "x = 1", 3)
    assert decode(encode(Raised("ValueError", "no", "x = 1", 3, MEANS))).explanation == MEANS
    assert decode(encode(TimedOut(5.0))) == TimedOut(5.0)


@pytest.mark.parametrize(
    "forged",
    [{"headline": "x" * 1_000_000}, {"certain": "yes"}, {"where": [{"role": "", "line": 10**9, "text": ""}]}, 1],
)
def test_a_forged_explanation_is_no_observation(forged):
    fields = msgspec.to_builtins(Raised("ValueError", "no", explanation=MEANS))
    fields["explanation"] = {**fields["explanation"], **forged} if isinstance(forged, dict) else forged
    message = msgspec.msgpack.encode(msgspec.msgpack.Ext(3, msgspec.msgpack.encode(fields)))
    with pytest.raises(msgspec.DecodeError):
        decode(message)


def test_plain_accepts_what_learners_return():
    parameter = torch.nn.Parameter(torch.ones(2))
    assert plain((1, [2.0, "a"], {"k": None})) == [1, [2.0, "a"], {"k": None}]
    assert plain(torch.Size([2, 3])) == [2, 3]
    assert plain(parameter) == Array.of(parameter)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (..., "..."),
        (len, "function"),
        (lambda: 0, "function"),
        (torch.nn.Linear, "class Linear"),
        (np.ones(2), "numpy.ndarray"),
        (1j, "complex"),
        ({1: 2}, "dict, and not all its keys are texts"),
        ({1, 2}, "set"),
        (torch.ones(2).to_sparse(), "sparse coo tensor"),
        (torch.ones(2, device="meta"), "tensor on the device meta, without numbers"),
        (torch.empty(MAX_BYTES + 1, dtype=torch.uint8), "tensor that is too large to compare"),
    ],
)
def test_anything_else_crosses_as_its_type(value, kind):
    assert plain(value) == Other(kind)
    assert decode(encode(plain(value))) == Other(kind)


def test_subclasses_do_not_cross():
    class Sly(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise AssertionError("learner code ran")

    assert plain(torch.ones(2).as_subclass(Sly)) == Other("Sly")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (OrderedDict(a=1), {"a": 1}),
        (defaultdict(list, a=[2]), {"a": [2]}),
        (Counter("ab"), {"a": 1, "b": 1}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (ChainMap({"a": 1}, {"b": 2}), {"a": 1, "b": 2}),
        (UserDict(a=1), {"a": 1}),
        (namedtuple("Pair", "x y")(1, 2), [1, 2]),
        (UserList([1, 2]), [1, 2]),
        (deque([1, 2]), [1, 2]),
        (range(3), [0, 1, 2]),
        (Fraction(1, 2), 0.5),
        (Decimal("0.5"), 0.5),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (IntEnum("Colour", "RED").RED, 1),
    ],
)
def test_any_mapping_sequence_and_real_number_crosses(value, expected):
    crossed = plain(value)
    assert crossed == expected
    assert type(crossed) is type(expected)
    assert decode(encode(crossed)) == expected


def test_what_a_subclass_holds_is_read_without_its_code():
    class Sly(dict):
        def items(self):
            raise AssertionError("learner code ran")

        keys = __iter__ = __getitem__ = items

    class SlyList(list):
        def __iter__(self):
            raise AssertionError("learner code ran")

        __len__ = __getitem__ = __iter__

    class SlyText(str):
        def __str__(self):
            raise AssertionError("learner code ran")

    assert plain(Sly(a=SlyList([1]))) == {"a": [1]}
    assert type(plain(SlyText("a"))) is str


def test_deep_and_cyclic_values_end():
    cycle = []
    cycle.append(cycle)
    assert encode(plain(cycle))


def test_plain_changes_nothing():
    tensor = torch.ones(2, requires_grad=True) * 2
    node = tensor.grad_fn
    plain(tensor)
    assert tensor.grad_fn is node
    assert tensor.requires_grad
    assert tensor._version == 0


def test_encode_refuses_what_is_not_plain():
    with pytest.raises(TypeError, match="a Tensor is no plain data: use plain"):
        encode({"x": torch.ones(2)})


@pytest.mark.parametrize(
    "message", [b"", b"\xc1", encode([1, 2])[:-1], msgspec.msgpack.encode(msgspec.msgpack.Ext(99, b""))]
)
def test_decode_refuses_forged_messages(message):
    with pytest.raises(msgspec.DecodeError):
        decode(message)


def test_forged_arrays_are_refused():
    with pytest.raises(ValueError, match=r"3 bytes cannot fill shape \(2,\) of float32"):
        Array((2,), "float32", b"abc").tensor()
    with pytest.raises(ValueError, match="no dtype is called 'load'"):
        Array((2,), "load", b"").tensor()
