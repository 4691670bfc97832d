"""What is known of the forward pass behind a graph: the order in which its nodes were recorded, and what they made."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec
import torch

from course_utils.graph.saved import Saved
from course_utils.graph.trace import Graph, LiveNode
from course_utils.graph.values import Value, in_line, values_of

# What PyTorch calls a saved tensor that the operation itself made. Source: derivatives.yaml of PyTorch.
RESULT = "result"


class Forward(msgspec.Struct, frozen=True, dict=True):
    """What is known of the forward pass behind `graph`: when each node was recorded, and some of the numbers.

    `recorded` has for each node the number that PyTorch gave it when it recorded it; empty where nothing is known.
    `values` has for leaves and for nodes with named results what those hold, in the order of the names. They are read
    when the recording starts: what was written to since the forward pass shows its new numbers. `exponents` has
    those of powers.
    """

    graph: Graph
    recorded: tuple[int, ...]
    values: Mapping[int, Sequence[Value]]
    exponents: Mapping[int, float]

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The operations, by node's number, in the order in which they ran. Made when first read."""
        return _order(self.graph, self.recorded) if self.recorded else ()


def forward_of(graph: Graph, nodes: Sequence[LiveNode], named: Mapping[int, Mapping[str, torch.Tensor]]) -> Forward:
    """Return what live nodes tell of the forward pass. `named` has the named tensors, as `named_at` gives them."""
    exponents = {}
    powers = {kind for kind in set(map(type, nodes)) if hasattr(kind, "_saved_exponent")}
    for index, node in enumerate(nodes if powers else ()):
        if type(node) in powers:
            exponent = node._saved_exponent
            if isinstance(exponent, int | float):
                exponents[index] = float(exponent)
    return Forward(graph, tuple([node._sequence_nr() for node in nodes]), values_of(nodes, named), exponents)


def _order(graph: Graph, recorded: Sequence[int]) -> tuple[int, ...]:
    """Return the operations in the order of the numbers that PyTorch gave them, each after those that it depends on.

    Each thread numbers its own nodes, so the numbers alone could put a node before its inputs.
    """
    waits = Counter(index for index, _ in graph.edges)
    users: dict[int, list[int]] = {}
    for index, edge in graph.edges:
        users.setdefault(edge.node, []).append(index)
    number = [-1 if node.is_leaf else recorded[node.index] for node in graph.nodes]
    ready = [(number[node.index], node.index) for node in graph.nodes if not waits[node.index]]
    heapq.heapify(ready)
    order = []
    while ready:
        _, index = heapq.heappop(ready)
        order.append(index)
        for user in users.get(index, ()):
            waits[user] -= 1
            if not waits[user]:
                heapq.heappush(ready, (number[user], user))
    return tuple(index for index in order if not graph.nodes[index].is_leaf)


def made_values(forward: Forward, saved: Saved, node: int) -> Sequence[Value]:
    """Return what a node's results hold, as far as that is known: named ones, or the one that the node saved itself."""
    if known := forward.values.get(node):
        return known
    return [entry.value for entry in saved if entry.node == node and entry.name == RESULT and entry.value is not None]


def steps(graph: Graph, made: Mapping[int, Sequence[str]], saved: Saved, forward: Forward) -> list[str]:
    """Say in a sentence what there was at the start, and in one for each operation what it made and saved."""
    leaves = [_told(made.get(node.index, ("a leaf",)), forward.values.get(node.index, ())) for node in graph.leaves]
    told = [f"Forward, as the code ran. It starts from {', '.join(leaves) or 'nothing that needs a gradient'}."]
    kept: dict[int, list[str]] = {}
    for entry in saved:
        kept.setdefault(entry.node, []).append(f"{entry.name} = {entry.label}" if entry.label else entry.name)
    for number, index in enumerate(forward.order, 1):
        what = _told(made.get(index, ("a result without a name",)), made_values(forward, saved, index))
        keeps = f", and it saves {' and '.join(kept[index])}" if index in kept else ""
        told.append(f"Forward {number}: {what} is made. {graph.nodes[index].name} is recorded{keeps}.")
    return told


def _told(names: Sequence[str], values: Sequence[Value]) -> str:
    texts = [in_line(value) for value in values] + [""] * (len(names) - len(values))
    return " and ".join(f"{name} = {text}" if text else name for name, text in zip(names, texts, strict=False))
