"""What `trace` reports of PyTorch's graphs."""

import gc
import weakref

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from course_utils import trace
from course_utils.graph import trace as module
from course_utils.graph.trace import Edge, GraphTooLarge


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, a, b):
        return 2 * a + 3 * b


@pytest.fixture
def x() -> torch.Tensor:
    return torch.tensor([[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]], requires_grad=True)


def test_nodes_edges_and_leaves(x):
    w = torch.full((2, 3), 2.0, dtype=torch.float64, requires_grad=True)
    graph = trace((x * w).sum())
    assert [node.name for node in graph.nodes] == ["SumBackward0", "MulBackward0", "AccumulateGrad", "AccumulateGrad"]
    assert graph.outputs == (Edge(0, 0),)
    assert graph.edges == ((0, Edge(1, 0)), (1, Edge(2, 0)), (1, Edge(3, 0)))
    assert [(leaf.shape, leaf.dtype) for leaf in graph.leaves] == [((2, 3), "float32"), ((2, 3), "float64")]


def test_shared_nodes_come_once(x):
    y = x
    for _ in range(40):
        y = y + y
    graph = trace(y)
    assert len(graph.nodes) == 41
    assert graph.nodes[0].inputs == (Edge(1, 0), Edge(1, 0))


def test_inputs_without_gradient_are_none(x):
    assert trace(x * 2).nodes[0].inputs == (Edge(1, 0), None)


def test_output_index_of_multi_output_nodes(x):
    first, second = x.unbind(0)
    graph = trace(second * first)
    assert graph.nodes[0].inputs == (Edge(1, 1), Edge(1, 0))
    assert "1 (output 1), 1" in str(graph)


def test_several_tensors_share_one_walk(x):
    y = x.exp()
    graph = trace(y, x, x.detach(), y)
    assert graph.outputs == (Edge(0, 0), Edge(1, 0), None, Edge(0, 0))
    assert len(graph.nodes) == 2


def test_tensors_without_a_graph():
    graph = trace(torch.ones(2))
    assert graph.nodes == ()
    assert graph.outputs == (None,)
    assert str(graph) == "no graph: nothing was recorded for these tensors"
    assert trace().outputs == ()


def test_a_leaf_is_its_own_graph(x):
    assert str(trace(x)) == "0 AccumulateGrad leaf (2, 3) float32"


def test_custom_functions(x):
    _, second = Double.apply(x)
    graph = trace(second)
    assert graph.nodes[0].name == "DoubleBackward"
    assert graph.outputs == (Edge(0, 1),)


def test_views_and_in_place_operations(x):
    y = x * 1
    view = y[0]
    view.mul_(3)
    names = {node.name for node in trace(y, view).nodes}
    assert "CopySlices" in names
    y.add_(1)
    assert trace(view).nodes, "a view whose base was written to"


def test_freed_and_bumped_graphs(x):
    y = x.exp()
    loss = (y * y).sum()
    before = trace(loss)
    with torch.no_grad():
        y.add_(1)
    assert trace(loss) == before
    other = (x * x).sum()
    before = trace(other)
    other.backward()
    assert trace(other) == before


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointed_graphs_are_not_run_again(x, reentrant):
    calls = []

    def forward(t):
        calls.append(1)
        return (t.exp() * t.sin()).tanh()

    y = checkpoint(forward, x, use_reentrant=reentrant)
    trace(y)
    assert len(calls) == 1


def test_order_is_the_same_every_time():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    loss = layer(torch.randn(2, 3, 8)).sum()
    assert trace(loss) == trace(loss)


def test_deep_chains_need_no_recursion(x):
    y = x
    for _ in range(5000):
        y = y + 1
    graph = trace(y)
    assert len(graph.nodes) == 5001
    assert str(graph).splitlines()[-1] == "... and 4,901 more nodes"


def test_too_large_a_graph_is_refused(x, monkeypatch):
    monkeypatch.setattr(module, "MAX_NODES", 50)
    y = x
    for _ in range(60):
        y = y + 1
    with pytest.raises(GraphTooLarge, match="Build and trace a smaller one"):
        trace(y)


def test_the_cap_keeps_the_process_alive():
    """The largest graph that may be walked is freed without overflowing the C stack."""
    y = torch.ones((), requires_grad=True)
    for _ in range(module.MAX_NODES - 1):
        y = y + 1
    assert len(trace(y).nodes) == module.MAX_NODES
    y = y + 1
    with pytest.raises(GraphTooLarge):
        trace(y)
    del y
    gc.collect()


def test_a_graph_keeps_nothing_alive(x):
    y = x * 2
    z = y.exp()
    node = weakref.ref(y)
    graph = trace(z)
    del y, z
    gc.collect()
    assert node() is None
    assert len(graph.nodes) == 3


def test_nothing_is_left_behind(x):
    y = (x * x).sum()
    trace(y)
    assert x.grad is None
    y.backward()
    assert torch.equal(x.grad, 2 * x.detach())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (3, r"argument 2 is of type int, not a tensor: pass tensors"),
        (
            [torch.ones(2)],
            r"argument 2 is of type list, not a tensor: pass its tensors one by one, as in f\(\*tensors\)",
        ),
        (None, r"argument 2 is of type NoneType"),
    ],
)
def test_anything_but_a_tensor_is_a_type_error(x, wrong, message):
    with pytest.raises(TypeError, match=message):
        trace(x, wrong)


def test_repr_counts(x):
    assert repr(trace(x * x)) == "Graph of 2 nodes, 2 edges, 1 leaf"


def test_nodes_without_a_class_have_the_name_that_cpp_gives(x):
    (y,) = torch._foreach_exp([x])
    assert trace(y).nodes[0].name == "ForeachExpBackward0"


def in_inference_mode(x):
    with torch.inference_mode():
        return trace(x)


def sparse(x):
    return trace(torch.eye(3).to_sparse().requires_grad_())


@pytest.mark.parametrize("make", [in_inference_mode, sparse])
def test_leaves_of_every_kind(x, make):
    assert [node.name for node in make(x).nodes] == ["AccumulateGrad"]


def test_a_view_that_pytorch_has_invalidated_gets_pytorchs_own_error(x):
    y = x * 1
    first, _ = y.unbind()
    y.add_(1)
    with pytest.raises(RuntimeError, match="Output 0 of Unbind is a view and its base"):
        trace(first)


def test_too_many_tensors_are_refused_before_they_are_touched(monkeypatch):
    monkeypatch.setattr(module, "MAX_NODES", 3)
    with pytest.raises(GraphTooLarge):
        trace(*torch.ones(4).unbind())
