"""Graphs of engines that learners wrote."""

import numpy as np
import pytest

from course_utils import draw
from course_utils.graph.own import is_own, own_graph
from course_utils.graph.trace import GraphTooLarge
from tests.answers.lesson_11_build_your_own.counting import Counting
from tests.answers.lesson_11_build_your_own.taping import taping


@pytest.fixture(params=[Counting, taping], ids=["counting", "taping"])
def engine(request):
    return request.param()


def test_each_node_once_and_leaves_with_their_shapes(engine):
    x, c = engine.tensor(np.ones((2, 3)), requires_grad=True), engine.tensor(3.0)
    y = x.exp()
    z = y * y + x * c
    graph, made = own_graph([z], {"x": x, "y": y, "c": c})
    assert [node.name for node in graph.leaves] == ["grad"]
    assert graph.leaves[0].shape == (2, 3)
    assert len(graph.nodes) == 5
    assert sorted(made.values()) == [("x",), ("y",)]
    square = next(node for node in graph.nodes if len(node.inputs) == 2 and node.inputs[0] == node.inputs[1])
    assert square.inputs[0].node == next(index for index, names in made.items() if names == ("y",))
    product = next(node for node in graph.nodes if None in node.inputs)
    assert product.inputs[1] is None


def test_draw_shows_it_as_it_shows_pytorchs(engine):
    x = engine.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    picture = draw((y * y).sum(), x=x, y=y)
    assert ">x (2,)<" in picture.svg
    assert ">forward: y<" in picture.svg
    assert picture.alt.startswith("Backward graph of 4 nodes and 4 edges, with the leaves x (2,).")


def test_values_of_named_tensors_are_drawn(engine):
    x = engine.tensor([1.0, 2.0], requires_grad=True)
    y = x * engine.tensor([3.0, 0.5])
    picture = draw(y.sum(), x=x, y=y, values=True)
    assert picture.svg.index(">[1 2]<") != picture.svg.index(">[3 1]<")
    assert picture.alt.endswith("Values: y = [3, 1], x = [1, 2].")


def test_no_graph(engine):
    assert draw(engine.tensor([1.0])).text == "no graph: nothing was recorded for these tensors"


def test_what_has_no_grad_fn_is_no_engines_tensor():
    assert not is_own(np.ones(2))
    with pytest.raises(TypeError, match="argument 1 is of type ndarray, not a tensor"):
        draw(np.ones(2))


def test_a_graph_that_is_too_large(monkeypatch, engine):
    monkeypatch.setattr("course_utils.graph.own.MAX_NODES", 10)
    x = engine.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(12):
        y = y + x
    with pytest.raises(GraphTooLarge, match="more than 10 nodes"):
        own_graph([y], {})


class Itself:
    """A result that is its own node, as in many small engines."""

    requires_grad, shape = True, ()

    def __init__(self, name, *inputs):
        self.name, self.inputs = name, inputs

    grad_fn = property(lambda self: self if self.inputs else None)

    def numpy(self):
        return np.zeros(())


def test_a_tensor_may_be_its_own_node():
    x = Itself("x")
    y = Itself("exp", x)
    graph, made = own_graph([Itself("mul", y, y)], {"x": x, "y": y})
    assert [node.name for node in graph.nodes] == ["mul", "exp", "grad"]
    assert made == {2: ("x",), 1: ("y",)}
