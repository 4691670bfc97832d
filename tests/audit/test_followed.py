"""What is known of tensors while they live."""

import gc
import weakref

import torch

from course_utils.audit.followed import Followed


def test_a_fact_belongs_to_one_tensor_and_not_to_an_equal_one():
    followed, tensor = Followed(4), torch.ones(3)
    followed.keep(tensor, "noise")
    assert followed.of(tensor) == "noise"
    assert followed.of(torch.ones(3)) is None
    assert followed.of("no tensor") is None
    followed.forget(tensor)
    assert followed.of(tensor) is None


def test_it_keeps_no_tensor_alive():
    followed, tensor = Followed(4), torch.ones(3)
    gone = weakref.ref(tensor)
    followed.keep(tensor, "noise")
    del tensor
    gc.collect()
    assert gone() is None
    assert followed.facts() == ["noise"]


def test_the_oldest_goes_where_there_are_too_many():
    followed, tensors = Followed(2), [torch.ones(at) for at in range(3)]
    for at, tensor in enumerate(tensors):
        followed.keep(tensor, at)
    assert [followed.of(tensor) for tensor in tensors] == [None, 1, 2]
    assert len(followed) == 2
    followed.clear()
    assert len(followed) == 0
