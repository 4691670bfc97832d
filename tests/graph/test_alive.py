"""Watching what is alive: memory by storage, graphs by node, and the peak of a run."""

import gc

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from course_utils.graph.alive import Graphs, Memory, PeakMemory


@pytest.fixture
def x() -> torch.Tensor:
    return torch.rand(100, requires_grad=True)


def test_memory_is_that_of_storages(x):
    memory = Memory()
    base = torch.rand(100)
    memory.add(base)
    memory.add(base[:2])
    assert memory.alive() == 400
    view = base[:1]
    del base
    assert memory.alive() == 400
    del view
    assert memory.alive() == 0


def test_a_saved_result_keeps_memory_until_backward(x):
    memory = Memory()
    y = x.exp()
    memory.add(y)
    loss = y.sum()
    del y
    assert memory.alive() == 400
    loss.backward()
    assert memory.alive() == 0


def test_memory_that_is_used_again_is_watched_again():
    memory = Memory()
    for _ in range(20):
        tensor = torch.rand(50)
        memory.add(tensor)
        assert memory.alive() == 200
        del tensor
    assert memory.alive() == 0


def test_graphs_are_watched_without_being_kept(x):
    gc.disable()
    try:
        graphs = Graphs()
        h = x.exp()
        graphs.add(h)
        graphs.add(x)  # has no node of its own
        loss = h.sum()
        del h
        loss.backward()
        assert graphs.alive() == 1
        del loss
        assert graphs.alive() == 0
    finally:
        gc.enable()


def test_peak_counts_what_has_grown(x):
    with PeakMemory() as memory:
        grown = torch.empty(1).resize_(100)
        torch.add(torch.ones(50), 1, out=grown.resize_(0))
        grown.resize_(300)
    assert memory.peak == memory.alive() == 1200


def test_peak_counts_what_is_made_inside(x):
    with PeakMemory() as memory:
        y = x.exp().sin()
    assert memory.alive() == memory.peak == 800
    del y
    assert memory.alive() == 0
    assert memory.peak == 800


def test_views_of_what_was_there_before_are_not_counted(x):
    with PeakMemory() as memory:
        views = x.view(10, 10).t(), x[3:], x.split(50), x.detach()
        outside = torch.cat([x, x])
    assert memory.peak == outside.nbytes
    assert len(views) == 4


def test_recomputing_in_backward_counts(x):
    def forward(x):
        return x.exp().sin().cos()

    with PeakMemory() as memory:
        y = checkpoint(forward, x, use_reentrant=False)
        assert memory.alive() == 400
        y.sum().backward()
    assert memory.peak >= 1200


def test_several_results_of_one_operation(x):
    with PeakMemory() as memory:
        values, indices = x.sort()
    assert memory.alive() == values.nbytes + indices.nbytes


def test_one_graph_of_several_results_is_alive_while_any_of_them_is(x):
    graphs = Graphs()
    first, second = x.sin(), x.cos()
    graphs.add(first, second)
    graphs.add(second)  # known already
    graphs.add()
    assert graphs.alive() == 1
    del first
    assert graphs.alive() == 1
    del second
    assert graphs.alive() == 0
