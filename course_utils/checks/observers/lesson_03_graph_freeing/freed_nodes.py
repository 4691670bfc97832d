"""Running an answer to `freed_nodes`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Case, Observation, Value, plain, type_name
from course_utils.checks.observers.lesson_03_graph_freeing.states import states
from course_utils.checks.observers.passes import engine_passes
from course_utils.checks.scenes.lesson_03_graph_freeing.freed_nodes import partly_freed
from course_utils.graph.trace import nodes_behind


def observe(answer: Answer, case: Case) -> Observation:
    loss, named, leaves = partly_freed(case)
    nodes = nodes_behind(loss)  # kept, so that ids stay theirs
    names = {id(tensor.grad_fn): name for name, tensor in named.items()}
    names |= {id(node): f"other {number}" for number, node in enumerate(nodes) if id(node) not in names}
    before, tensors = states(loss), [_as_is(tensor) for tensor in leaves.values()]
    with engine_passes(loss, *leaves.values()) as passes:
        returned = answer(loss)
    listed: Value = plain(returned)
    if type(returned) in (list, tuple, set, frozenset):
        listed = [names[id(item)] if id(item) in names else ["type", type_name(item)] for item in returned]
    return {
        "returned": listed,
        "kinds": {names[id(node)]: type(node).__name__ for node in nodes},
        "passes": len(passes),
        "freed": states(loss) != before,
        "changed": [_as_is(tensor) for tensor in leaves.values()] != tensors,
    }


def _as_is(tensor: torch.Tensor) -> list[Value]:
    return [plain(tensor.grad), tensor.requires_grad, tensor._version]
