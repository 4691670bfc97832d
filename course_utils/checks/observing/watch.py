"""Watching what an answer makes autograd do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.autograd.graph import get_gradient_edge


@contextmanager
def engine_passes(*tensors: torch.Tensor) -> Iterator[set[int]]:
    """Collect the ids of the backward passes that reach any of `tensors` while the body runs.

    A node that is called by hand starts no pass and is not counted. Every hook is removed at the end.
    """
    passes: set[int] = set()
    handles = [
        get_gradient_edge(tensor).node.register_prehook(lambda grads: passes.add(torch._C._current_graph_task_id()))
        for tensor in tensors
    ]
    try:
        yield passes
    finally:
        for handle in handles:
            handle.remove()
