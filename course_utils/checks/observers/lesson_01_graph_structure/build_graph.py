"""Running an answer to `build_graph`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.graph import trace as graphs


def observe(answer: Answer, case: Case) -> Observation:
    a, b = leaves = [case.given[name].tensor().requires_grad_() for name in "ab"]
    if case.given["lived in"]:  # a matrix by columns, and gradients of an earlier pass
        a, b = leaves = [leaf.detach().mT.contiguous().mT.requires_grad_() for leaf in leaves]
        for leaf in leaves:
            leaf.grad = torch.full_like(leaf, 0.5)
    old = [_gradient(leaf) for leaf in leaves]
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
    seen["graded"] = [name for name, leaf, was in zip("ab", leaves, old, strict=True) if _gradient(leaf) != was]
    return seen


def _gradient(leaf: torch.Tensor) -> Array | None:
    return None if leaf.grad is None else Array.of(leaf.grad)
