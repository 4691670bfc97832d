"""What `record_backward` records, and that it changes nothing."""

import gc

import pytest
import torch
from torch import nn

from course_utils import record_backward, saved, trace
from course_utils.graph import record as module
from course_utils.graph.alive import Graphs
from course_utils.graph.trace import nodes_behind


def scalar(value: float) -> torch.Tensor:
    return torch.tensor(value, requires_grad=True)


def steps(recording):
    return [(recording.graph.nodes[event.node].name, event) for event in recording.events]


def called(recording, name):
    (event,) = [event for node, event in steps(recording) if node == name]
    return event


def values(gradients):
    return [None if gradient is None else gradient.values for gradient in gradients]


@pytest.fixture
def branches():
    """out = (x * y + x) ** 2 at x = 2, y = 3."""
    x, y = scalar(2.0), scalar(3.0)
    return x, y, (x * y + x) ** 2


def test_a_small_pass_from_seed_to_leaves(branches):
    x, y, out = branches
    recording = record_backward(out, x=x, y=y)
    assert [name for name, _ in steps(recording)] == [
        *("PowBackward0", "AddBackward0", "MulBackward0"),
        *("AccumulateGrad", "AccumulateGrad"),
    ]
    received = [values(event.received) for event in recording.events]
    assert received == [[1.0], [16.0], [16.0], [64.0], [32.0]]
    assert [values(event.sent) for event in recording.events] == [[16.0], [16.0, 16.0], [48.0, 32.0], [], []]
    at_x = recording.events[3]
    assert [part.gradient.values for part in at_x.arrived[0]] == [16.0, 48.0]
    assert [recording.graph.nodes[part.node].name for part in at_x.arrived[0]] == ["AddBackward0", "MulBackward0"]
    assert [part.input for part in at_x.arrived[0]] == [1, 0]
    assert (at_x.before, at_x.after.values) == (None, 64.0)
    assert recording.failure is None
    assert x.grad.item() == 64.0
    assert y.grad.item() == 32.0


def test_the_text(branches):
    x, y, out = branches
    assert str(record_backward(out, x=x, y=y)).splitlines() == [
        "1. PowBackward0 receives 1, the gradient that the pass starts with, and sends 16 to AddBackward0: it lowers "
        "the power by one and multiplies by the old one. It frees self.",
        "2. AddBackward0 receives 16 and sends 16 to MulBackward0, 16 to x: a sum passes the gradient on to its terms.",
        "3. MulBackward0 receives 16 and sends 48 to x, 32 to y: it multiplies by the other factor. "
        "It frees other and self.",
        "4. x receives 64 = 16 + 48: .grad was None and is now 64.",
        "5. y receives 32: .grad was None and is now 32.",
        "Recording of 5 of 5 nodes; besides leaves the graph kept 4 bytes before, 0 after",
    ]


def test_a_second_pass_adds_to_what_grad_held(branches):
    x, y, out = branches
    first = record_backward(out, retain_graph=True, x=x, y=y)
    second = record_backward(out, x=x, y=y)
    assert [event.bytes for event in first.events] == [4] * 5
    assert [event.freed for event in first.events] == [()] * 5
    assert second.events[3].before.values == 64.0
    assert second.events[3].after.values == 128.0
    assert "x receives 64 = 16 + 48 and adds it to .grad: 64 becomes 128." in second.captions()


def models():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
    yield "transformer", nn.TransformerEncoder(layer, 2), torch.randn(3, 5, 16)
    yield "lstm", nn.LSTM(4, 6), torch.randn(7, 3, 4)
    yield "conv", nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten()), torch.randn(4, 2, 5, 5)


@pytest.mark.parametrize("options", [{}, {"retain_graph": True}, {"create_graph": True}], ids=str)
@pytest.mark.parametrize(("model", "x"), [pytest.param(m, x, id=name) for name, m, x in models()])
@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
def test_gradients_are_those_of_a_plain_pass_to_the_bit(model, x, options):
    grads = []
    for run in (torch.Tensor.backward, record_backward):
        model.zero_grad()
        out = model(x)
        loss = (out[0] if isinstance(out, tuple) else out).pow(2).mean()
        run(loss, **options)
        grads.append([parameter.grad.detach().clone() for parameter in model.parameters()])
        model.zero_grad()
    assert all(torch.equal(plain, recorded) for plain, recorded in zip(*grads, strict=True))


def test_the_order_is_that_of_a_plain_pass():
    _, model, x = next(models())
    loss = model(x).pow(2).mean()
    nodes = nodes_behind(loss)
    order = []
    handles = [node.register_hook(lambda *_, at=at: order.append(at)) for at, node in enumerate(nodes)]
    loss.backward(retain_graph=True)
    for handle in handles:
        handle.remove()
    assert [event.node for event in record_backward(loss).events] == order


def test_no_hook_and_no_graph_is_left(monkeypatch):
    x = scalar(2.0)
    out = (x.exp() * x) ** 2
    graphs = Graphs()
    graphs.add(out)
    recording = record_backward(out, retain_graph=True)
    calls = []
    monkeypatch.setattr(module._Recorder, "_receive", lambda *arguments: calls.append(arguments))
    out.backward()
    assert not calls
    del out
    gc.collect()
    assert graphs.alive() == 0
    assert len(recording.events) == 4


def test_the_pass_keeps_no_gradient_alive_that_a_plain_one_would_not():
    """`.grad` takes over the gradient's memory, as it does without a recorder: no copy is made."""
    w = torch.randn(100, requires_grad=True)
    seen = []
    loss = (2 * w).sum()
    loss.grad_fn.next_functions[0][0].register_hook(lambda sent, _: seen.append(sent[0].data_ptr()))
    record_backward(loss)
    assert w.grad.data_ptr() == seen[0]


def test_events_read_later_tell_the_values_of_the_pass():
    x = torch.full((5, 5), 2.0, requires_grad=True)
    seen = []
    h = x * 3
    h.register_hook(seen.append)
    recording = record_backward(h.neg().sum(), x=x)
    x.grad.mul_(100)
    seen.pop().mul_(0)
    assert recording.events[-1].after.norm == pytest.approx(15.0)
    assert called(recording, "NegBackward0").sent[0].norm == pytest.approx(5.0)
    assert recording.events is recording.events


def test_a_recording_keeps_no_tensor_and_no_node():
    x = torch.rand(3, 7, requires_grad=True)
    recording = record_backward((x.exp() * x).sum(), x=x)
    reached, left = {}, [recording]
    while left:
        one = left.pop()
        if id(one) not in reached and not isinstance(one, type):
            reached[id(one)] = one
            left += [getattr(one, name) for name in getattr(one, "__struct_fields__", ())] or gc.get_referents(one)
    assert len(reached) > 50
    assert not [one for one in reached.values() if isinstance(one, torch.Tensor | torch.autograd.graph.Node)]


def test_what_was_freed_after_which_node_and_the_bytes_that_were_left():
    x = torch.rand(10, requires_grad=True)
    loss = x.exp().sin().sum()
    before = saved(loss).bytes
    recording = record_backward(loss)
    assert recording.saved.bytes == before == 40  # the sine saved what the exponential saved: one storage
    assert [(name, event.freed, event.bytes) for name, event in steps(recording)] == [
        ("SumBackward0", (), 40),
        ("SinBackward0", ("self",), 40),
        ("ExpBackward0", ("result",), 0),
        ("AccumulateGrad", (), 0),
    ]


def test_memory_of_leaves_is_not_counted(branches):
    x, y, _ = branches
    recording = record_backward(x * y)
    assert recording.saved.bytes == 0
    assert recording.events[0].freed == ("other", "self")


def test_packed_tensors_are_freed_too():
    x = torch.rand(4, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.numpy(), torch.from_numpy):
        loss = (x.detach() * x).sum()
    assert called(record_backward(loss), "MulBackward0").freed == ("self",)


def test_a_double_edge_brings_two_contributions():
    x = scalar(3.0)
    event = record_backward(x * x, x=x).events[-1]
    assert [(part.node, part.input, part.gradient.values) for part in event.arrived[0]] == [(0, 0, 3.0), (0, 1, 3.0)]
    assert event.received[0].values == 6.0


def test_several_outputs_and_one_that_nobody_used():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    _, b, c = x.unbind()
    event = called(record_backward(b * c), "UnbindBackward0")
    assert values(event.received) == [None, 3.0, 2.0]
    text = record_backward((lambda parts: parts[1] * parts[2])(x.unbind()), x=x).captions()[1]
    assert text == (
        "UnbindBackward0 receives nothing for output 0 and 3 for output 1 and 2 for output 2 and sends [0, 3, 2] to x: "
        "it joins the gradients of its outputs."
    )


class Repeating(torch.autograd.Function):
    """Passes on the first number that it receives in every place: the same memory, read once and again."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient[:1].expand(len(gradient))


@pytest.mark.parametrize(
    ("pass_on", "sent"),
    [
        (lambda x: x.view(5, 4).t(), 2470.0),
        (lambda x: x.flip(0), 2470.0),
        (Repeating.apply, 0.0),  # the first number is 0
        (lambda x: x * 2, 4 * 2470.0),
    ],
)
def test_the_norm_of_what_is_passed_on_is_that_of_its_own_numbers(pass_on, sent):
    x = torch.zeros(20, requires_grad=True)
    out = pass_on(x)
    recording = record_backward(out, torch.arange(20.0).view(out.shape))
    leaf = recording.events[-1]
    told = [recording.events[-2].sent[0], *leaf.received, leaf.after]
    assert [gradient.norm for gradient in told] == pytest.approx([sent**0.5] * 3)
    assert leaf.after.norm == pytest.approx(x.grad.norm().item())


def test_large_gradients_come_as_shape_and_norm():
    x = torch.full((4, 5), 2.0, requires_grad=True)
    event = called(record_backward((x * x).sum(), x=x), "MulBackward0")
    (gradient, _) = event.sent
    assert (gradient.shape, gradient.dtype, gradient.values) == ((4, 5), "float32", None)
    assert gradient.norm == pytest.approx((20 * 4.0) ** 0.5)


def test_only_what_inputs_ask_for_runs(branches):
    x, y, out = branches
    recording = record_backward(out, inputs=y, x=x, y=y)
    assert x.grad is None
    assert y.grad.item() == 32.0
    assert [name for name, _ in steps(recording)].count("AccumulateGrad") == 1
    assert values(called(recording, "MulBackward0").sent) == [None, 32.0]
    assert len(recording.graph.nodes) == 5


def test_a_pass_that_ends_at_a_result():
    x = scalar(2.0)
    h = x * x
    recording = record_backward(h.exp(), inputs=[h])
    assert h.grad is not None
    assert x.grad is None
    assert recording.captions()[-1] == "MulBackward0 receives 54.6 and sends nothing on. It frees other and self."


def test_several_losses_and_seeds_of_their_own():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    recording = record_backward([x.sum(), 3 * x], [None, torch.tensor([1.0, 10.0])], x=x)
    assert x.grad.tolist() == [4.0, 31.0]
    assert sum(part.node is None for event in recording.events for part in event.arrived[0]) == 2


class Doubles(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, flag):
        ctx.save_for_backward(x)
        ctx.flag = flag
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        if ctx.flag:
            raise ValueError("no gradient today")
        return 2 * grad, None


def test_custom_functions():
    x = scalar(3.0)
    recording = record_backward(Doubles.apply(x.exp(), False), x=x)
    event = recording.events[0]
    assert (values(event.sent), event.freed) == ([2.0], ("tensors[0]",))
    assert recording.captions()[0] == (
        "DoublesBackward receives 1, the gradient that the pass starts with, "
        "and sends 2 to ExpBackward0. It frees tensors[0]."
    )


def test_an_error_in_the_middle_ends_the_recording():
    x = scalar(3.0)
    recording = record_backward(Doubles.apply(x.exp(), True).sin(), x=x)
    assert [name for name, _ in steps(recording)] == ["SinBackward0"]
    assert (recording.failure.type, recording.failure.message) == ("ValueError", "no gradient today")
    assert recording.graph.nodes[recording.failure.node].name == "DoublesBackward"
    assert str(recording).splitlines()[1:] == [
        "2. The pass ends at DoublesBackward with ValueError: no gradient today",
        "Recording of 1 of 4 nodes, ended by ValueError; besides leaves the graph kept 8 bytes before, 4 after",
    ]


def test_a_second_pass_over_a_freed_graph(branches):
    _, _, out = branches
    record_backward(out)
    recording = record_backward(out)
    assert recording.events == ()
    assert recording.failure.type == "RuntimeError"
    assert "a second time" in recording.failure.message
    assert recording.graph.nodes[recording.failure.node].name == "PowBackward0"


@pytest.mark.parametrize(
    ("loss", "message"),
    [(torch.ones(2), "does not require grad"), (torch.ones(2, requires_grad=True) * 2, "only for scalar outputs")],
    ids=["no graph", "no seed"],
)
def test_a_pass_that_cannot_start(loss, message):
    recording = record_backward(loss)
    assert recording.events == ()
    assert recording.failure.node is None
    assert message in recording.failure.message
    assert str(recording).startswith("1. The pass ends with RuntimeError: ")


def test_an_error_in_a_hook_of_the_learner(branches):
    x, _, out = branches

    def refuse(gradient):
        raise KeyError("mine")

    x.register_hook(refuse)
    recording = record_backward(out)
    assert (recording.failure.type, len(recording.events)) == ("KeyError", 3)


def test_hooks_that_change_gradients_are_told():
    x = scalar(2.0)
    h = x * 3
    h.register_hook(lambda gradient: 10 * gradient)
    x.register_hook(lambda gradient: gradient.clone())
    recording = record_backward(h.exp() + h, x=x)
    event = called(recording, "MulBackward0")
    assert event.hooked
    assert not recording.events[-1].hooked
    assert event.received[0].values == pytest.approx(10 * sum(part.gradient.values for part in event.arrived[0]))
    assert ", changed by a hook, and sends" in recording.captions()[2]


def test_an_optimizer_in_the_pass():
    w = scalar(2.0)
    w.register_post_accumulate_grad_hook(lambda parameter: setattr(parameter, "grad", None))
    assert record_backward(3 * w, w=w).captions()[-1] == "w receives 3, and a hook leaves .grad at None."


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
def test_second_derivatives_can_be_recorded():
    x = scalar(3.0)
    record_backward(x**3, create_graph=True)
    first, x.grad = x.grad, None
    assert first.requires_grad
    record_backward(first, x=x)
    assert x.grad.item() == 18.0


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
def test_the_graph_of_the_backward_pass_is_that_of_a_plain_pass():
    graphs = []
    for run in (torch.Tensor.backward, record_backward):
        x = scalar(3.0)
        run(x.exp() * x, create_graph=True)
        graphs.append(trace(x.grad))
        x.grad = None
    assert graphs[0] == graphs[1]


@pytest.mark.parametrize("sparse", [True, False])
def test_embeddings(sparse):
    table = nn.Embedding(5, 3, sparse=sparse)
    recording = record_backward(table(torch.tensor([1, 1, 4])).sum(), table=table.weight)
    assert recording.events[-1].after.norm == pytest.approx(15**0.5)


def test_nan_is_no_change():
    x = scalar(0.0)
    root = x.sqrt()
    recording = record_backward(root * 0 + root * 0, x=x)
    assert not any(event.hooked for event in recording.events)


def test_complex_numbers():
    z = torch.tensor(1 + 2j, requires_grad=True)
    recording = record_backward(z.abs(), z=z)
    assert recording.events[-1].after.norm == pytest.approx(1.0)
    assert "j" in recording.captions()[-1]


def test_the_loss_may_be_named_too():
    loss = scalar(2.0) * 3
    assert record_backward(loss, loss=loss).made[0] == ("loss",)


def test_wrong_arguments():
    with pytest.raises(TypeError, match="argument 1 is of type float, not a tensor"):
        record_backward([1.0])
    with pytest.raises(TypeError, match=r"record_backward\(\) got x=float; keyword arguments name tensors, as in x=x"):
        record_backward(scalar(1.0) * 2, x=1.0)
    mismatch = record_backward([scalar(1.0) * 2], [torch.tensor(1.0), torch.tensor(1.0)])
    assert mismatch.failure.message == "there are 1 losses but 2 gradients to start from"


def test_an_error_in_a_pass_to_chosen_inputs_names_its_node():
    """One of the inputs is in no graph of the loss, and the gradient of `w` is not asked for."""
    x, w, apart = scalar(3.0), scalar(2.0), scalar(1.0)
    recording = record_backward(Doubles.apply(x.exp(), True).sin() * w, inputs=[x, apart])
    assert recording.failure.type == "ValueError"
    assert recording.graph.nodes[recording.failure.node].name == "DoublesBackward"
