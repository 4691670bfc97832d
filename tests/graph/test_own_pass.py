"""Passes of engines that learners wrote, watched by their hooks."""

import numpy as np
import pytest
import torch

from course_utils import record_backward, step
from tests.answers.lesson_11_build_your_own.counting import Counting
from tests.answers.lesson_11_build_your_own.taping import taping


@pytest.fixture(params=[Counting, taping], ids=["counting", "taping"])
def engine(request):
    return request.param()


def built(x, w):
    """Return results with names, on tensors of an engine's or of PyTorch's."""
    h = x * w
    s = h + x
    return {"x": x, "w": w, "h": h, "s": s, "z": s * s}


def leaves(engine):
    return engine.tensor(2.0, requires_grad=True), engine.tensor(3.0, requires_grad=True)


def received(recording):
    """Return what each named tensor received, by its name."""
    return {recording.made[event.node][0]: event.received[0].values for event in recording.events}


def test_gradients_are_those_of_pytorchs_pass(engine):
    named = built(*leaves(engine))
    recording = record_backward(named["z"], **named)
    theirs = built(*(torch.tensor(n, dtype=torch.float64, requires_grad=True) for n in (2.0, 3.0)))
    other = record_backward(theirs["z"], **theirs)
    assert received(recording) == received(other) == {"z": 1.0, "s": 16.0, "h": 16.0, "w": 32.0, "x": 64.0}
    assert named["x"].grad.numpy() == 64.0
    assert recording.own
    assert repr(recording) == "Recording of 5 of 5 nodes, by an engine of your own"


def test_the_order_is_the_engines():
    """The two engines take the leaves in another order, and that is what is shown."""
    orders = []
    for engine in (Counting(), taping()):
        named = built(*leaves(engine))
        orders.append(list(received(record_backward(named["z"], **named))))
    assert orders == [["z", "s", "h", "w", "x"], ["z", "s", "h", "x", "w"]]


def test_what_the_interface_does_not_show_is_not_made_up(engine):
    named = built(*leaves(engine))
    product, total, square = (event for event in record_backward(named["z"], **named).events[:3])
    assert product.sent == (None, None), "the two parts of s are added before anybody can see them"
    assert [sent and sent.values for sent in total.sent] == [16.0, None]
    assert [sent and sent.values for sent in square.sent] == [None, 32.0]
    x, _ = leaves(engine)
    recording = record_backward((x.exp() * 2.0).log(), x=x)
    assert [event.node for event in recording.events] == [0, 3], "the results between have no name"


def test_the_words(engine):
    x = engine.tensor([1.0, 2.0], requires_grad=True)
    h = x * engine.tensor([3.0, 0.5])
    first, second, third = record_backward(h.sum(), x=x, h=h).captions()
    name = "mul" if isinstance(engine, Counting) else "times"
    assert first == f"sum receives 1, the gradient that the pass starts with, and sends [1, 1] to {name}."
    assert second == f"{name} receives [1, 1] and sends [3, 0.5] to x."
    assert third == "x receives [3, 0.5]: .grad was None and is now [3, 0.5]."
    named = built(*leaves(engine))
    total = "add" if isinstance(engine, Counting) else "plus"
    assert record_backward(named["z"], **named).captions()[0].endswith(f"What goes to {total} is not seen alone.")


def test_what_a_hook_of_the_learners_changes_shows_and_handles_are_removed(engine):
    x, w = leaves(engine)
    h = x * w
    h.register_hook(lambda g: g * 5.0)
    z = h + x
    recording = record_backward(z, None, x=x, h=h, z=z, w=w, retain_graph=True)
    assert received(recording)["x"] == 16.0
    calls = len(recording.events)
    (x * w).backward()
    assert len(recording.events) == calls
    assert x.grad.numpy() == 19.0


def test_an_engine_that_runs_a_node_for_each_path_is_seen_to():
    class EachPath(Counting):
        def passed(self, root, gradient, keep):
            found = {}

            def down(place, g):
                g = self.hooked(place, g)
                found[place] = g if place not in found else found[place] + g
                parts = place.rule(place, g) if hasattr(place, "rule") else ()
                for to, part in zip(getattr(place, "inputs", ()), parts, strict=True):
                    if to is not None:
                        down(to, part)

            down(root, gradient)
            return found

    named = built(*leaves(EachPath()))
    recording = record_backward(named["z"], **named)
    assert [recording.made[event.node][0] for event in recording.events].count("s") == 2


def test_a_pass_that_raises(engine):
    x, w = leaves(engine)
    z = x * w
    z.backward()
    recording = record_backward(z, x=x, w=w)
    assert recording.failure.type == "RuntimeError"
    assert recording.captions()[-1].startswith("The pass ends with RuntimeError: ")
    assert step(recording).panels[0].steps[-1].failed


def test_what_only_pytorchs_pass_takes(engine):
    x, w = leaves(engine)
    with pytest.raises(TypeError, match="takes `gradient` and `retain_graph`; create_graph and inputs are PyTorch's"):
        record_backward(x * w, create_graph=True)
    with pytest.raises(TypeError, match="got x=ndarray"):
        record_backward(x * w, x=np.ones(2))


def test_without_hooks():
    class Bare(Counting.Tensor):
        register_hook = property()

    class Early(Counting):
        Tensor = Bare

    x, w = leaves(Early())
    with pytest.raises(TypeError, match="Bare has no `register_hook`\\. It is stage 8 of lesson 11"):
        record_backward(x * w, x=x)


def test_the_stepper_shows_it_beside_pytorchs(engine):
    named = built(*leaves(engine))
    theirs = built(*(torch.tensor(n, dtype=torch.float64, requires_grad=True) for n in (2.0, 3.0)))
    stepper = step(
        record_backward(named["z"], **named), record_backward(theirs["z"], **theirs), titles=["mine", "PyTorch"]
    )
    mine, other = stepper.panels
    assert mine.before == "Before the pass. The graph has 5 nodes. What they keep only your engine knows."
    assert (mine.bytes, other.bytes, mine.forward) == (None, 8, ())
    assert ">turn 2: 16<" in mine.svg
    assert mine.svg.count('class="beside"') == 2
    assert '"bytes":null' in stepper.page()
