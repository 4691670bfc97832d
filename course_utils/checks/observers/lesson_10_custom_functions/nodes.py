"""The nodes between inputs and a result, and what hangs on their ctx."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import FunctionCtx
from torch.autograd.graph import get_gradient_edge

from course_utils.graph import saved
from course_utils.graph.memory import memory_of
from course_utils.graph.trace import nodes_behind

# More operations than any answer needs. A look at a graph ends there.
MAX_OPERATIONS = 50


def attached(result: Any, like: torch.Tensor) -> bool:
    """Return whether a gradient of the shape and dtype of `like` can be sent back through `result`."""
    return (
        type(result) is torch.Tensor
        and result.requires_grad
        and result.shape == like.shape
        and result.dtype == like.dtype
    )


def operations(result: torch.Tensor, *inputs: torch.Tensor) -> list[list[Any]]:
    """Return name and kind, True for a custom Function, of each node between a result and what it was made from."""
    ends = {get_gradient_edge(tensor).node for tensor in inputs if tensor.requires_grad}
    nodes = [get_gradient_edge(result).node]
    seen = set(nodes) | ends
    found: list[list[Any]] = []
    for node in nodes:
        if node in ends:
            continue
        found.append([node.name(), isinstance(node, FunctionCtx)])
        if len(found) == MAX_OPERATIONS:
            break
        for before, _ in node.next_functions:
            if before is not None and before not in seen:
                seen.add(before)
                nodes.append(before)
    return found


def on_ctx(y: torch.Tensor) -> bool:
    """Return whether tensors hang on a ctx, where no pass frees them."""
    return any(entry.state == "attribute" for entry in saved.saved(y))


def keeps_itself(y: torch.Tensor) -> bool:
    """Return whether the graph behind a result keeps the result, or a view of it."""
    memory, _ = memory_of(y)
    return any(
        memory_of(tensor)[0] == memory
        for node in nodes_behind(y)
        for *_, tensor in saved.kept(node)
        if tensor is not None
    )
