"""Running an answer to `build_graph`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.checks.scenes.numbers import by_columns
from course_utils.graph import trace as graphs


def observe(answer: Answer, case: Case) -> Observation:
    leaves = {name: _leaf(case, name) for name in "ab"}
    old = {name: _gradient(leaf) for name, leaf in leaves.items()}
    owners = {id(leaf): name for name, leaf in leaves.items()}
    tensor = answer(*leaves.values())
    seen: Observation = {"returned": plain(tensor), "nodes": None}
    if type(tensor) is torch.Tensor:
        nodes = graphs.nodes_behind(tensor)
        graph = graphs.describe(nodes, graphs.roots_of([tensor]))
        seen["nodes"] = [
            [owners.get(id(live.variable), "another leaf")]
            if node.is_leaf
            else [node.name, *([edge.node, edge.output] if edge else None for edge in node.inputs)]
            for node, live in zip(graph.nodes, nodes, strict=True)
        ]
    seen["changed"] = [name for name, leaf in leaves.items() if Array.of(leaf) != case.given[name]]
    seen["graded"] = [name for name, leaf in leaves.items() if _gradient(leaf) != old[name]]
    seen["frozen"] = [name for name, leaf in leaves.items() if not leaf.requires_grad]
    return seen


def _leaf(case: Case, name: str) -> torch.Tensor:
    """Return a leaf of the case: where it has lived, a matrix by columns, with the gradient of an earlier pass."""
    leaf: torch.Tensor = case.given[name].tensor()
    if not case.given["lived in"]:
        return leaf.requires_grad_()
    leaf = by_columns(leaf).requires_grad_()
    leaf.grad = torch.full_like(leaf, 0.5)
    return leaf


def _gradient(leaf: torch.Tensor) -> Array | None:
    return None if leaf.grad is None else Array.of(leaf.grad)
