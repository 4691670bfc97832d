"""Running an answer to `freed_nodes`."""

from __future__ import annotations

import torch
from torch.autograd.graph import Node

from course_utils.checks.data import Answer, Case, Observation, Value, plain, type_name
from course_utils.checks.observers.lesson_03_graph_freeing.states import states
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.scenes.lesson_03_graph_freeing.freed_nodes import partly_freed
from course_utils.graph.trace import nodes_behind


def observe(answer: Answer, case: Case) -> Observation:
    loss, named, leaves = partly_freed(case)
    nodes = nodes_behind(loss)  # kept, so that ids stay theirs
    names = {id(tensor.grad_fn): name for name, tensor in named.items()}
    names |= {id(node): f"other {number}" for number, node in enumerate(nodes) if id(node) not in names}
    before, tensors = states(loss), [_as_is(tensor) for tensor in leaves.values()]

    def listed() -> Value:
        """Return the names of the nodes that the answer names."""
        returned = answer(loss)
        if type(returned) not in (list, tuple, set, frozenset):
            return plain(returned)
        return [
            names.get(id(item), ["node" if isinstance(item, Node) else "type", type_name(item)]) for item in returned
        ]

    with every_pass() as passes:
        returned = listed()
    unchanged = states(loss) == before and [_as_is(tensor) for tensor in leaves.values()] == tensors
    later: Value = None
    if case.given["then a pass"]:
        if unchanged and not passes:
            loss.backward()
        later = listed()
    return {
        "returned": returned,
        "later": later,
        "kinds": {names[id(node)]: type(node).__name__ for node in nodes},
        "passes": len(passes),
        "changed": not unchanged,
    }


def _as_is(tensor: torch.Tensor) -> list[Value]:
    return [plain(tensor.grad), tensor.requires_grad, tensor._version]
