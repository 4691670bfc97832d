"""A look at the live graph behind an error: bounded, and without running any part of it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from types import CodeType
from typing import Any

import torch

from course_utils.explain.reading import is_a
from course_utils.graph.memory import memory_of
from course_utils.graph.saved import kept
from course_utils.graph.trace import ACCUMULATE, LiveNode, node_name

MAX_NODES = 5_000
MAX_SECONDS = 0.05

# What autograd's names for common operations look like in code.
_WRITTEN = {
    "Mul": "*", "Add": "+", "Sub": "-", "Div": "/", "Pow": "**", "Mm": "@", "Bmm": "@", "Mv": "@", "Dot": "@",
    "Addmm": "a linear layer", "Select": "indexing", "Slice": "slicing", "Index": "indexing",
    "CopySlices": "a write into a part", "ConvolutionBackward": "a convolution", "Convolution": "a convolution",
    "NativeBatchNorm": "batch norm", "NativeLayerNorm": "layer norm", "NllLoss": "cross entropy",
    "LogSoftmax": "log_softmax", "Fill": "fill_", "Zero": "zero_", "Copys": "copy_", "ToCopy": "a conversion",
}  # fmt: skip


def look(roots: Iterable[LiveNode]) -> list[LiveNode]:
    """Return the nodes behind `roots`, each once, breadth first: at most MAX_NODES, in MAX_SECONDS of computing."""
    nodes = list(dict.fromkeys(roots))
    seen = set(nodes)
    end = time.thread_time() + MAX_SECONDS  # not the clock: on a busy machine the same card must come
    for node in nodes:  # the list grows while it is read
        for to, _ in node.next_functions:
            if to is not None and to not in seen:
                seen.add(to)
                nodes.append(to)
        if len(nodes) >= MAX_NODES or time.thread_time() > end:
            break
    return nodes[:MAX_NODES]


def behind(tensors: Iterable[torch.Tensor]) -> list[LiveNode]:
    """Return the nodes behind some tensors."""
    return look(tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None)


def operation(node: LiveNode) -> str:
    """Return what a node's operation is called in code: "exp", or "*" for a product."""
    name = node_name(node)
    if is_a(node, torch.autograd.function.FunctionCtx):
        return name.removesuffix("Backward")
    return operation_named(name)


def operation_named(name: str) -> str:
    """Return what an operation is called in code, from the name of its node or as PyTorch's messages have it."""
    name = re.sub(r"Backward\d*$", "", name)
    return _WRITTEN.get(name) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def modified(nodes: Iterable[LiveNode]) -> list[tuple[LiveNode, str, torch.Tensor]]:
    """Return what nodes keep that was written to since: node, the name under which it keeps it, and the tensor.

    In the order in which a backward pass comes to them. Nothing is unpacked that has a hook: on a checkpointed graph
    that would run the forward again.
    """
    found = []
    for node in nodes:
        for name, state, tensor in kept(node):
            if state == "modified" and tensor is not None:
                found.append((node, name, tensor))
    return sorted(found, key=lambda entry: -number(entry[0]))


def number(node: LiveNode) -> int:
    """Return when a node was made, in the count of its thread. Leaves, which belong to no time, come last."""
    return -1 if node_name(node) == ACCUMULATE else int(node._sequence_nr())


def same_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two tensors share their memory, as a view and its base do."""
    (one, size), (other, _) = memory_of(a), memory_of(b)
    return one == other and size > 0


def recorded_lines(node: LiveNode) -> list[str]:
    """Return the stack that anomaly mode kept when the node was made; nothing without that mode."""
    stack = node.metadata.get("traceback_", [])
    return [str(entry) for entry in stack]


def backward_of(node: Any) -> CodeType | None:
    """Return the code of the `backward` by which a node of a Function runs; None of any other node."""
    function = getattr(type(node), "_forward_cls", None)
    code: CodeType | None = getattr(getattr(function, "backward", None), "__code__", None)
    return code
