"""Counting backward passes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.autograd.graph import get_gradient_edge

from course_utils.graph.trace import LiveNode


def count_passes(result: torch.Tensor, passes: set[int]) -> None:
    """Collect the ids of the backward passes that go through a result. Passes that stop there are not counted."""
    if result.grad_fn is not None:
        result.grad_fn.register_prehook(lambda gradients: passes.add(torch._C._current_graph_task_id()))


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
