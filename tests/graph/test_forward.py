"""What is known of the forward pass."""

import torch

from course_utils import record_backward


def test_operations_come_in_the_order_of_the_code():
    x = torch.tensor(2.0, requires_grad=True)
    late = x.exp()
    early = late.sin()
    side = x.cos()
    recording = record_backward(side * early, x=x, early=early)
    names = [recording.graph.nodes[index].name for index in recording.forward.order]
    assert names == ["ExpBackward0", "SinBackward0", "CosBackward0", "MulBackward0"]


def test_nodes_of_several_threads_come_after_their_inputs():
    import threading

    x = torch.tensor(2.0, requires_grad=True)
    for _ in range(5):
        x.exp()  # this thread counts on
    results = [x.exp()]

    def elsewhere():
        results.append(results[0].sin())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    recording = record_backward(results[1].tanh())
    names = [recording.graph.nodes[index].name for index in recording.forward.order]
    assert names == ["ExpBackward0", "SinBackward0", "TanhBackward0"]


def test_values_of_leaves_and_named_results():
    x, w = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor(3.0, requires_grad=True)
    y = x * w
    recording = record_backward(y.sum(), y=y)
    held = {recording.graph.nodes[index].name: values[0].numbers for index, values in recording.forward.values.items()}
    assert held == {"MulBackward0": [3.0, 6.0], "AccumulateGrad": 3.0}
    assert [value.numbers for (value,) in recording.forward.values.values()] == [[3.0, 6.0], [1.0, 2.0], 3.0]


def test_a_recording_holds_no_tensor():
    import gc
    import weakref

    x = torch.tensor(2.0, requires_grad=True)
    y = x**2
    alive = weakref.ref(y)
    recording = record_backward(y * 3, x=x, y=y)
    assert list(recording.forward.exponents.values()) == [2.0]
    del y
    gc.collect()
    assert alive() is None
