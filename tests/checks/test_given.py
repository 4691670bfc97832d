"""What the exercises of lesson 01 give to a learner is what their checks use."""

import inspect
import re
from pathlib import Path

import torch

from course_utils import notebooks, trace
from course_utils.checks.judges.lesson_01_graph_structure.build_graph import WANTED
from course_utils.checks.judges.lesson_01_graph_structure.predict_graph import predicted_graph
from course_utils.checks.judges.lesson_01_graph_structure.predict_leaves import eight_tensors
from course_utils.checks.scenes.lesson_01_graph_structure.connected_loss import broken_loss

MASTER = notebooks.read(Path(__file__).parents[2] / "solutions" / "01_graph_structure.ipynb")
SETUP = "import torch\nfrom torch import nn\nfrom course_utils import trace\n"


def given(exercise: str) -> str:
    (cell,) = (cell for cell in MASTER.cells if f"given-{exercise}" in cell.metadata.get("tags", ()))
    return cell.source


def block(title: str, language: str) -> str:
    (cell,) = (cell for cell in MASTER.cells if re.match(rf"## \d+\. {title}\n", cell.source))
    return re.search(rf"```{language}\n(.*?)```", cell.source, re.DOTALL)[1]


def test_eight_tensors():
    names = {}
    exec(SETUP + given("predict_leaves"), names)
    assert {name: names[name].is_leaf for name in eight_tensors()} == {
        name: tensor.is_leaf for name, tensor in eight_tensors().items()
    }


def test_predicted_graph():
    names = {"torch": torch, "c": torch.rand(3)} | {name: torch.rand(3, requires_grad=True) for name in "ab"}
    exec(block("Predict a graph", "python"), names)
    assert trace(names["y"]) == predicted_graph()


def test_wanted_graph():
    lines = block("Build a graph of a given shape", "text").splitlines()
    assert len(lines) == len(WANTED)
    for index, (line, (name, *edges)) in enumerate(zip(lines, WANTED, strict=True)):
        if edges:
            ends = [
                "none" if edge is None else f"{edge[0]} (output {edge[1]})" if edge[1] else str(edge[0])
                for edge in edges
            ]
            assert line.split(maxsplit=3) == [str(index), name, "->", ", ".join(ends)]
        else:
            assert line.split() == [str(index), "AccumulateGrad", "leaf,", "this", "is", name]


def test_broken_loss():
    def bare(source: str) -> str:
        return re.sub(r"def broken_loss\(.*?\).*?:\n", "", source)

    assert bare(inspect.getsource(broken_loss)).strip() in given("connected_loss")
