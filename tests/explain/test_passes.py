"""The memory of backward passes."""

import gc
import threading
import traceback
import weakref

import pytest
import torch

from course_utils.explain import passes


@pytest.fixture
def remembered():
    passes.remember()
    yield
    passes.forget()


def loss_of(w):
    return (w**2).sum()


def test_the_traceback_is_as_without_it():
    def files():
        loss = loss_of(torch.ones(2, requires_grad=True))
        loss.backward()
        with pytest.raises(RuntimeError) as caught:
            loss.backward()
        return [(entry.filename, entry.name) for entry in traceback.extract_tb(caught.value.__traceback__)]

    without = files()
    passes.remember()
    try:
        assert files() == without
    finally:
        passes.forget()


def test_results_are_as_without_it(remembered):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    (g,) = torch.autograd.grad(loss_of(w), w, create_graph=True)
    g.sum().backward()
    assert g.tolist() == [2, 4]
    assert w.grad.tolist() == [2, 2]


def test_passes_are_noted_with_their_line_and_only_here(remembered):
    w = torch.ones(2, requires_grad=True)
    loss_of(w).backward()
    loss_of(w).backward(retain_graph=True)
    torch.autograd.grad(loss_of(w), w)
    other = threading.Thread(target=lambda: loss_of(w).backward())
    other.start()
    other.join()
    noted = passes.before_the_last()
    assert [it.retained for it in noted] == [False, True]
    here = test_passes_are_noted_with_their_line_and_only_here.__code__.co_firstlineno
    assert [it.line - here for it in noted] == [2, 3]
    assert noted[0].made < noted[1].made
    assert all(map(passes.is_learners_pass, noted))


def test_only_the_last_ones_are_kept_and_no_graph(remembered):
    w = torch.ones(2, requires_grad=True)
    losses = []
    for _ in range(passes.REMEMBERED + 10):
        loss = loss_of(w)
        losses.append(weakref.ref(loss))
        loss.backward()
    del loss
    gc.collect()
    assert len(passes.before_the_last()) == passes.REMEMBERED - 1
    assert not any(loss() is not None for loss in losses)


def test_forgetting_leaves_pytorch_as_it_was():
    before = torch.autograd._engine_run_backward
    passes.remember()
    passes.remember()
    assert torch.autograd._engine_run_backward is not before
    passes.forget()
    assert torch.autograd._engine_run_backward is before
    assert passes.before_the_last() == []
