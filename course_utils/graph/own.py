"""The graph of an engine that a learner wrote, as the same plain data as PyTorch's.

What is read is the interface of lesson 11: a tensor has `grad_fn` and `requires_grad`, a node has `name` and `inputs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from course_utils.graph.trace import MAX_NODES, Edge, Graph, GraphTooLarge, Node
from course_utils.graph.values import Value, value_of

# Stands in the place of PyTorch's AccumulateGrad.
LEAF = "grad"


def is_own(tensor: object) -> bool:
    """Return whether this is no tensor of PyTorch's, and has what a tensor of a learner's engine has."""
    parts = ("grad_fn", "requires_grad", "numpy")
    return not isinstance(tensor, torch.Tensor) and all(hasattr(tensor, part) for part in parts)


def is_leaf(place: object) -> bool:
    """Return whether an entry of a node's inputs is a leaf, whose `grad_fn` is None: a result may be its own node."""
    return getattr(place, "grad_fn", place) is None


def own_graph(tensors: Sequence[Any], names: Mapping[str, Any]) -> tuple[Graph, dict[int, tuple[str, ...]]]:
    """Return the graph behind tensors of an engine, breadth first as in `trace`, and the names of what nodes made.

    Raises GraphTooLarge above MAX_NODES nodes.
    """
    roots = [_place(tensor) for tensor in tensors]
    places = places_behind(tensors)
    number = {id(place): index for index, place in enumerate(places)}
    nodes = tuple(_node(index, place, number) for index, place in enumerate(places))
    outputs = tuple(None if root is None else Edge(number[id(root)], 0) for root in roots)
    made: dict[int, tuple[str, ...]] = {}
    for name, tensor in names.items():
        index = number.get(id(_place(tensor)))
        if index is not None:
            made[index] = (*made.get(index, ()), name)
    return Graph(nodes, outputs), made


def places_behind(tensors: Sequence[Any]) -> list[Any]:
    """Return the nodes and the leaves behind tensors of an engine, in the order of `own_graph`.

    Raises GraphTooLarge above MAX_NODES.
    """
    places: list[Any] = []
    known: set[int] = set()
    for tensor in tensors:
        _meet(_place(tensor), places, known)
    for place in places:  # the list grows while it is read
        for entry in () if is_leaf(place) else place.inputs:
            _meet(entry, places, known)
    return places


def own_values(names: Mapping[str, Any], made: Mapping[int, tuple[str, ...]]) -> dict[int, list[Value]]:
    """Return what the named tensors hold, by the node that made them, in the order of `made`."""
    values = {index: [value_of(torch.as_tensor(names[name].numpy())) for name in own] for index, own in made.items()}
    return {index: [value for value in known if value is not None] for index, known in values.items()}


def _place(tensor: Any) -> Any:
    """Return where the gradient of a tensor arrives: its node, a leaf itself, or None."""
    if tensor.grad_fn is not None:
        return tensor.grad_fn
    return tensor if tensor.requires_grad else None


def _meet(place: Any, places: list[Any], known: set[int]) -> None:
    if place is None or id(place) in known:
        return
    if len(places) == MAX_NODES:
        raise GraphTooLarge(f"the graph of your engine has more than {MAX_NODES:,} nodes. Draw a smaller one.")
    known.add(id(place))
    places.append(place)


def _node(index: int, place: Any, number: Mapping[int, int]) -> Node:
    if is_leaf(place):
        array = place.numpy()
        return Node(index, LEAF, (), tuple(array.shape), str(array.dtype))
    inputs = tuple(None if entry is None else Edge(number[id(entry)], 0) for entry in place.inputs)
    return Node(index, str(place.name), inputs)
