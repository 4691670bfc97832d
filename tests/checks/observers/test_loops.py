"""What a watched training loop tells, and that watching keeps nothing alive."""

import torch
from torch import nn

from course_utils.checks.observers import telling
from course_utils.checks.observers.loops import Below, Loop, plain_tensor
from course_utils.graph.trace import nodes_behind


def loop(**options):
    """A model of two layers, its optimizer, and what watches them."""
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer, Loop(model[-1], optimizer)


def test_a_step_tells_what_a_pass_retained():
    model, optimizer, watch = loop()
    for retain in (False, True):
        model(torch.ones(4, 2)).sum().backward(retain_graph=retain)
        optimizer.step()
        held = model(torch.ones(4, 2)).sum()
        held.backward(retain_graph=retain)
        optimizer.step()
    steps = watch.seen()["steps"]
    assert [bool(step["kept"]) for step in steps] == [False, False, False, True]
    assert [step["graphs"] for step in steps] == [0, 1, 1, 1]


def test_a_closure_is_seen_after_it_has_run():
    model, optimizer, watch = loop()

    def closure():
        loss = model.forward(torch.ones(4, 2)).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    seen = watch.seen()
    assert (seen["runs"], seen["reached"], seen["steps"][0]["graphs"]) == (1, 1, 1)


def test_what_is_below_goes_when_nobody_holds_the_top():
    x = torch.ones(3, requires_grad=True)
    top = x.exp().sin()
    below = Below(top)
    assert below.saved().bytes == 12
    del top
    assert below.saved().bytes == 0


def test_a_graph_that_is_held_below_its_top_is_alive():
    model, optimizer, watch = loop()
    held = []
    for _ in range(3):
        out = model(torch.ones(4, 2))
        held.append([node for node, _ in out.grad_fn.next_functions])
        out.sum().backward()
        del out
        optimizer.step()
    seen = watch.seen()
    assert [step["graphs"] for step in seen["steps"]] == [0, 1, 2]
    assert seen["left alive"]["graphs"] == 3


def test_who_takes_the_marks_off_nodes_is_told_of(monkeypatch):
    told = []
    monkeypatch.setattr(telling, "_states", [telling._State(told.append)])
    model, _, watch = loop()
    for clears in (False, True):
        told.clear()
        out = model(torch.ones(4, 2))
        for node in nodes_behind(out)[1:] if clears else ():
            node.metadata.clear()
        watch.seen()
        assert (telling.DECOY in told) == clears


def test_the_tensor_under_a_wrapper_is_a_plain_one():
    seen = []
    torch.func.grad(lambda x: seen.append(plain_tensor(x * 2)) or (x * 2).sum())(torch.ones(2))
    assert seen[0].untyped_storage().nbytes() == 8
