"""Which nodes and saved tensors belong to the tensors that somebody named."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import torch

from course_utils.graph.memory import memory_of
from course_utils.graph.trace import LiveNode, roots_of


def check_names(names: Mapping[str, object], function: str) -> None:
    """Raise a TypeError that says which keyword argument of `function` is not a tensor."""
    for name, tensor in names.items():
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(
                f"{function}() got {name}={type(tensor).__name__}; keyword arguments name tensors, as in x=x"
            )


def named_at(nodes: list[LiveNode], names: Mapping[str, torch.Tensor]) -> dict[int, dict[str, torch.Tensor]]:
    """Return for nodes, by number, the named tensors that they made, as "h", or "b (output 1)" for a later output."""
    number = {node: index for index, node in enumerate(nodes)}
    named: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in names.items():
        try:
            (edge,) = roots_of([tensor])
        except RuntimeError:  # a view that PyTorch has invalidated: it has no place in any graph
            continue
        if edge is not None and edge[0] in number:
            label = f"{name} (output {edge[1]})" if edge[1] else name
            named.setdefault(number[edge[0]], {})[label] = tensor
    return named


def made_by(named: Mapping[int, Mapping[str, torch.Tensor]]) -> dict[int, tuple[str, ...]]:
    """Return only the names of what `named_at` found."""
    return {index: tuple(tensors) for index, tensors in named.items()}


class Known:
    """The memory of named tensors, to tell which of them a saved tensor is."""

    def __init__(self, names: Mapping[str, torch.Tensor]) -> None:
        self._owners: dict[Hashable, dict[str, torch.Tensor]] = {}
        for name, tensor in names.items():
            memory, size = memory_of(tensor)
            if size:
                self._owners.setdefault(memory, {})[name] = tensor

    def label(self, tensor: torch.Tensor, memory: Hashable) -> str:
        """Return "x" for x itself, "view of x" for a part of it, "" for what has no name."""
        owners = self._owners.get(memory, {})
        for name, owner in owners.items():
            if owner is tensor:  # not another one over the same memory, as detach() makes it
                return name
        for name, owner in owners.items():
            if _layout(owner) == _layout(tensor):
                return name
        return f"view of {next(iter(owners))}" if owners else ""


def _layout(tensor: torch.Tensor) -> tuple[Any, ...]:
    if tensor.layout is not torch.strided or tensor.is_nested:
        return (id(tensor),)
    return tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.dtype
