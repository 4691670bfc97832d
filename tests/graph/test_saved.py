"""What `saved` reports that graphs keep."""

import gc
import weakref

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from course_utils import saved


class Keep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        product = a * b
        ctx.save_for_backward(a, product)
        ctx.extra = b
        return product

    @staticmethod
    def backward(ctx, grad):
        return grad, grad


@pytest.fixture
def x() -> torch.Tensor:
    return torch.tensor([[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]], requires_grad=True)


def rows(*tensors, **options):
    return [(entry.operation, entry.name, entry.state) for entry in saved(*tensors, **options)]


def test_what_operations_save(x):
    w = torch.ones(2, 3, requires_grad=True)
    assert rows(x * w) == [("MulBackward0", "other", "held"), ("MulBackward0", "self", "held")]
    assert rows(x.exp()) == [("ExpBackward0", "result", "held")]
    assert rows(x + w) == []
    assert rows(x.sum()) == []


def test_an_input_that_backward_does_not_need_is_not_listed(x):
    assert rows(x * torch.ones(2, 3)) == [("MulBackward0", "other", "held")]


def test_bytes_are_those_of_storages_counted_once(x):
    y = x.exp()  # saves its result, 24 bytes
    z = y * y  # saves y twice, the same storage
    report = saved(z)
    assert len(report) == 3
    assert {entry.storage for entry in report} == {0}
    assert report.bytes == 24


def test_a_view_keeps_its_whole_base():
    base = torch.ones(100, requires_grad=True).exp()
    assert saved(base[:2] * base[2:4]).bytes == 400


def test_leaves_and_given_tensors_are_listed_but_not_counted(x):
    data = torch.ones(2, 3)
    y = x * data
    assert saved(y).bytes == 24
    assert saved(y, besides=[data]).bytes == 0
    assert saved(x * x).bytes == 0
    assert [entry.leaf for entry in saved(x * x)] == [True, True]


def test_freed_after_backward_and_kept_with_retain_graph(x):
    y = (x.exp() * x).sum()
    y.backward(retain_graph=True)
    assert {state for _, _, state in rows(y)} == {"held"}
    y.backward()
    assert {state for _, _, state in rows(y)} == {"freed"}
    assert saved(y).bytes == 0
    assert len(saved(y).freed) == 3


def test_lists_of_saved_tensors(x):
    picked = (x * 1)[[0, 1]]
    assert ("IndexBackward0", "indices[0]", "held") in rows(picked)
    picked.sum().backward()
    assert ("IndexBackward0", "indices", "freed") in rows(picked)


def test_in_place_writes_show_as_modified(x):
    y = x.exp()
    z = y * 2
    with torch.no_grad():
        y.add_(1)
    assert ("ExpBackward0", "result", "modified") in rows(z)
    data = torch.ones(2, 3)
    z = x * data
    data.add_(1)
    assert rows(z) == [("MulBackward0", "other", "modified")]


def test_a_write_before_saving_is_no_modification(x):
    y = x * 1
    y.add_(1)
    assert rows(y.exp())[0] == ("ExpBackward0", "result", "held")
    assert rows((y * y).sum())[0] == ("MulBackward0", "other", "held")


def test_checkpointed_graphs_are_not_run_again(x):
    calls = []

    def forward(t):
        calls.append(1)
        return (t.exp() * t.sin()).tanh()

    y = checkpoint(forward, x, use_reentrant=False)
    assert {state for _, _, state in rows(y)} == {"packed"}
    assert saved(y).bytes == 0
    assert len(calls) == 1
    y.sum().backward()
    assert {state for _, _, state in rows(y)} == {"freed"}


def test_hooks_are_not_run(x):
    def unpack(packed):
        raise AssertionError("the unpack hook ran")

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.half(), unpack):
        y = x.exp()
    assert rows(y) == [("ExpBackward0", "result", "packed")]


def test_custom_functions_with_saved_and_attribute_tensors(x):
    b = torch.full((2, 3), 2.0)
    y = Keep.apply(x, b)
    assert rows(y) == [
        ("KeepBackward", "tensors[0]", "held"),
        ("KeepBackward", "tensors[1]", "held"),
        ("KeepBackward", "ctx.extra", "attribute"),
    ]
    y.sum().backward()
    assert rows(y) == [("KeepBackward", "tensors, if any", "freed"), ("KeepBackward", "ctx.extra", "attribute")]


def test_node_numbers_are_those_of_trace(x):
    from course_utils import trace

    y = (x.exp() * x).sum()
    graph = trace(y)
    for entry in saved(y):
        assert graph.nodes[entry.node].name == entry.operation


@pytest.mark.parametrize("model", ["lstm", "transformer", "conv"])
def test_real_models(model):
    torch.manual_seed(0)
    if model == "lstm":
        loss = torch.nn.LSTM(4, 5)(torch.randn(3, 2, 4))[0].sum()
    elif model == "transformer":
        loss = torch.nn.TransformerEncoderLayer(8, 2, 16)(torch.randn(3, 2, 8)).sum()
    else:
        net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.MaxPool2d(2))
        loss = net(torch.randn(2, 1, 8, 8)).sum()
    assert saved(loss).bytes > 0
    loss.backward()
    assert saved(loss).bytes == 0
    assert all(entry.state == "freed" for entry in saved(loss))


def test_text(x):
    y = x.exp()
    assert str(saved(y)) == (
        "0  ExpBackward0  result  held  (2, 3) float32  24 bytes in storage 0\n"
        "1 saved tensor, 24 bytes kept for this graph"
    )
    y.sum().backward()
    assert repr(saved(y)) == "1 saved tensor, 1 freed, 0 bytes kept for this graph"
    assert str(saved(torch.ones(2))) == "0 saved tensors, 0 bytes kept for this graph"


def test_anything_but_a_tensor_is_a_type_error():
    with pytest.raises(TypeError, match="argument 1 is of type str"):
        saved("loss")


class KeepResult(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, note=None):
        result = x.exp()
        ctx.save_for_backward(x, result)
        ctx.parts = [result.detach(), note]
        return result

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[1], None


def test_a_functions_own_result_written_to_since(x):
    y = KeepResult.apply(x)
    z = y.sum()
    assert rows(z)[1] == ("KeepResultBackward", "tensors[1]", "held")
    with torch.no_grad():
        y.add_(1)
    assert [state for _, _, state in rows(z)][:2] == ["held", "modified"]


def test_tensors_in_lists_on_ctx_are_seen(x):
    assert rows(KeepResult.apply(x))[-1] == ("KeepResultBackward", "ctx.parts[0]", "attribute")


def test_a_function_that_saved_nothing_is_not_said_to_have(x):
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad

    y = Same.apply(x)
    assert rows(y) == []
    y.sum().backward()
    assert rows(y) == [("SameBackward", "tensors, if any", "freed")]


def test_classes_of_functions_are_not_kept_alive(x):
    def made():
        class Local(KeepResult):
            pass

        y = Local.apply(x)
        saved(y)
        return weakref.ref(Local)

    local = made()
    gc.collect()
    assert local() is None


def test_nodes_that_keep_more_than_can_be_seen_are_counted(x):
    y = x * 1
    y[0].mul_(torch.ones(3))
    assert saved(y).unseen == 1
    assert repr(saved(y)).endswith("and what 1 of its nodes keep unseen")
    (z,) = torch._foreach_exp([x])
    assert rows(z) == []
    assert saved(z).unseen == 1
    assert saved(x.exp()).unseen == 0


def sparse_product(x):
    return torch.sparse.mm(torch.eye(2).to_sparse(), x)


def in_functorch(x):
    reports = []

    def f(t):
        y = (t.exp() * t).sum()
        reports.append(saved(y))
        return y

    torch.func.grad(f)(x.detach())
    assert len(reports[0]) == 3
    return x * 1


def jagged(x):
    return torch.nested.nested_tensor([x, x[:1]], layout=torch.jagged).exp()


@pytest.mark.parametrize("make", [sparse_product, in_functorch, jagged])
def test_tensors_without_a_plain_storage(x, make):
    assert saved(make(x)) is not None


def test_sparse_bytes_are_those_of_indices_and_values(x):
    (entry,) = (entry for entry in saved(sparse_product(x)) if entry.dtype == "float32")
    assert entry.bytes == 2 * 2 * 8 + 2 * 4


def test_tensors_without_an_address_are_told_apart():
    x = torch.randn(30, 4, device="meta", requires_grad=True)
    report = saved((x.exp() * x.sin()).sum())
    assert report.bytes == 2 * 480
    assert {entry.leaf for entry in report if entry.operation != "SinBackward0"} == {False}


def test_besides_must_be_tensors(x):
    with pytest.raises(TypeError, match="argument 2 is of type NoneType, not a tensor"):
        saved(x * 1, besides=[x, None])
