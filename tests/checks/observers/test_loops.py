"""What a watched training loop tells, and that watching keeps nothing alive."""

import torch
from torch import nn

from course_utils.checks.observers.loops import Below, Loop, plain_tensor


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


def test_the_tensor_under_a_wrapper_is_a_plain_one():
    seen = []
    torch.func.grad(lambda x: seen.append(plain_tensor(x * 2)) or (x * 2).sum())(torch.ones(2))
    assert seen[0].untyped_storage().nbytes() == 8
