"""Watching what an answer makes autograd do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.autograd.graph import get_gradient_edge

from course_utils.graph.trace import LiveNode


@contextmanager
def engine_passes(*watched: torch.Tensor | LiveNode) -> Iterator[set[int]]:
    """Collect the ids of the backward passes that reach any of the tensors or nodes while the body runs.

    A node that is called by hand starts no pass and is not counted. Every hook is removed at the end.
    """
    passes: set[int] = set()
    nodes = [get_gradient_edge(item).node if isinstance(item, torch.Tensor) else item for item in watched]
    handles = [node.register_prehook(lambda grads: passes.add(torch._C._current_graph_task_id())) for node in nodes]
    try:
        yield passes
    finally:
        for handle in handles:
            handle.remove()
