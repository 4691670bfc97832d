"""Running an answer to `build_graph`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.graph import trace as graphs


def observe(answer: Answer, case: Case) -> Observation:
    a, b = (case.given[name].tensor().requires_grad_() for name in "ab")
    owners = {id(a): "a", id(b): "b"}
    tensor = answer(a, b)
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
    seen["changed"] = [name for name, leaf in (("a", a), ("b", b)) if Array.of(leaf) != case.given[name]]
    seen["graded"] = [name for name, leaf in (("a", a), ("b", b)) if leaf.grad is not None]
    return seen
