"""The graph that PyTorch recorded, as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec
import torch
from torch.autograd.graph import get_gradient_edge

from course_utils.graph.memory import dtype_name, shape_of

# A node of PyTorch's own graph. C++ nodes and custom Functions share no Python class.
LiveNode: TypeAlias = Any

# Looking at a node from Python makes a wrapper that lives as long as the node. Freeing a chain of
# wrapped nodes recurses in C: with an 8 MiB stack 40,000 nodes pass and 41,250 crash the process.
MAX_NODES = 20_000

# What a printed graph shows: a screenful or two.
MAX_ROWS = 100

ACCUMULATE = "AccumulateGrad"

# The class of C++ nodes that Python has no class of their own for (torch._foreach_exp makes one).
UNNAMED = "CppFunction"

_TOO_LARGE = (
    f"the graph has more than {MAX_NODES:,} nodes, which cannot be walked from Python safely: freeing so many nodes "
    "would crash the process. Build and trace a smaller one, for example one step of the loop or one layer."
)


class GraphTooLarge(ValueError):
    """The graph has more nodes than can be walked safely."""


class Edge(msgspec.Struct, frozen=True, gc=False):
    """Where a gradient goes next: output number `output` of node number `node`."""

    node: int
    output: int

    def __str__(self) -> str:
        return f"{self.node} (output {self.output})" if self.output else str(self.node)


class Node(msgspec.Struct, frozen=True, gc=False):
    """One recorded operation, or one leaf that collects a gradient.

    `inputs` has one entry for each input of the operation, in order: an edge, or None where the
    input needs no gradient. `shape` and `dtype` are set for leaves only (nodes called AccumulateGrad).
    """

    index: int
    name: str
    inputs: tuple[Edge | None, ...]
    shape: tuple[int, ...] | None = None
    dtype: str | None = None

    @property
    def is_leaf(self) -> bool:
        return self.shape is not None


class Graph(msgspec.Struct, frozen=True):
    """The nodes that some tensors depend on, each once, nearest to the tensors first.

    `outputs` has one entry for each traced tensor: an edge, or None where it has no graph.
    A Graph holds numbers and names only. It keeps no tensor and no node alive.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[Edge | None, ...]

    @property
    def leaves(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.is_leaf)

    @property
    def edges(self) -> tuple[tuple[int, Edge], ...]:
        """Every edge, with the number of the node that it starts from."""
        return tuple((node.index, edge) for node in self.nodes for edge in node.inputs if edge is not None)

    def rows(self) -> list[str]:
        """Return a line for each node: its number, its name, and where its gradients go."""
        width = max((len(node.name) for node in self.nodes), default=0)
        digits = len(str(len(self.nodes) - 1))
        return [f"{node.index:>{digits}} {node.name:<{width}} {_reads(node)}".rstrip() for node in self.nodes]

    def __str__(self) -> str:
        return shortened(self.rows(), "nodes") or "no graph: nothing was recorded for these tensors"

    def __repr__(self) -> str:
        leaves = "1 leaf" if len(self.leaves) == 1 else f"{len(self.leaves)} leaves"
        return f"Graph of {len(self.nodes)} nodes, {len(self.edges)} edges, {leaves}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"{self!r}\n{self}")


def trace(*tensors: torch.Tensor) -> Graph:
    """Return the graph that autograd recorded for `tensors`.

    Nodes come in breadth-first order from the tensors, so the order is the same on every run. Nothing is
    executed, saved tensors are not touched, and freed graphs trace as well as fresh ones.

    Raises TypeError for anything that is not a tensor, GraphTooLarge above MAX_NODES nodes, and PyTorch's own
    RuntimeError for a view that PyTorch has invalidated: such a view has no graph any more.
    """
    roots = roots_of(tensors)
    return describe(nodes_from(roots), roots)


def nodes_behind(*tensors: torch.Tensor) -> list[LiveNode]:
    """Return PyTorch's own nodes behind `tensors`, numbered as in `trace`. Raises as `trace` does."""
    return nodes_from(roots_of(tensors))


def nodes_from(roots: Iterable[tuple[LiveNode, int] | None]) -> list[LiveNode]:
    """Return PyTorch's own nodes behind what `roots_of` gave, numbered as in `trace`."""
    return walk(root[0] for root in roots if root is not None)


def walk(roots: Iterable[LiveNode]) -> list[LiveNode]:
    """Return PyTorch's own nodes behind `roots`, each once, breadth first, without recursion.

    The list keeps the graph alive: drop it before you ask what is still alive.
    """
    nodes = list(dict.fromkeys(roots))
    seen = set(nodes)
    for node in nodes:  # the list grows while it is read
        for to, _ in node.next_functions:
            if to is not None and to not in seen:
                seen.add(to)
                nodes.append(to)
                if len(nodes) > MAX_NODES:
                    raise GraphTooLarge(_TOO_LARGE)
    return nodes


def roots_of(tensors: Iterable[torch.Tensor]) -> list[tuple[LiveNode, int] | None]:
    """Return for each tensor the node that receives its gradient, and at which output; None without a graph.

    A leaf's node is its AccumulateGrad. Raises TypeError for anything that is not a tensor.
    """
    tensors = list(tensors)
    if len(tensors) > MAX_NODES:
        raise GraphTooLarge(_TOO_LARGE)
    check_tensors(tensors)
    return [_edge(tensor) if tensor.requires_grad else None for tensor in tensors]


def check_tensors(tensors: Iterable[object]) -> None:
    """Raise a TypeError that names the first thing that is not a tensor."""
    for position, tensor in enumerate(tensors, 1):
        if not isinstance(tensor, torch.Tensor):
            unpack = isinstance(tensor, list | tuple)
            advice = "pass its tensors one by one, as in f(*tensors)" if unpack else "pass tensors"
            raise TypeError(f"argument {position} is of type {type(tensor).__name__}, not a tensor: {advice}")


class _Touch(torch.autograd.Function):
    """Takes any tensor and reads nothing of it: what it leaves in the graph is an edge to the tensor's node."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
        return torch.empty(0)


def _edge(tensor: torch.Tensor) -> tuple[LiveNode, int]:
    if tensor.grad_fn is not None:
        return tensor.grad_fn, tensor.output_nr
    with torch.inference_mode(False), torch.enable_grad(), torch._C.DisableTorchFunctionSubclass():
        try:
            return get_gradient_edge(tensor).node, 0
        except NotImplementedError:  # it takes a view, and sparse leaves have none
            touched: Any = _Touch.apply(tensor)  # type: ignore[no-untyped-call]
            return touched.grad_fn.next_functions[0][0], 0


def node_name(node: LiveNode) -> str:
    """Return a node's name as its class has it, or as C++ has it where there is no class for it."""
    name = type(node).__name__
    return node.name().rpartition("::")[2] if name == UNNAMED else name


def describe(nodes: list[LiveNode], roots: list[tuple[LiveNode, int] | None]) -> Graph:
    """Turn live nodes into plain data."""
    number = {node: index for index, node in enumerate(nodes)}
    described = []
    for index, node in enumerate(nodes):
        name = node_name(node)
        if name == ACCUMULATE:
            leaf = node.variable
            described.append(Node(index, name, (), shape_of(leaf), dtype_name(leaf.dtype)))
            continue
        inputs: list[Edge | None] = []
        for to, output in node.next_functions:
            inputs.append(None if to is None else Edge(number[to], output))
        described.append(Node(index, name, tuple(inputs)))
    outputs = tuple(None if root is None else Edge(number[root[0]], root[1]) for root in roots)
    return Graph(tuple(described), outputs)


def shortened(rows: list[str], what: str) -> str:
    """Join rows for reading; of a long list the first and a count of the rest."""
    more = [f"... and {len(rows) - MAX_ROWS:,} more {what}"] if len(rows) > MAX_ROWS else []
    return "\n".join(rows[:MAX_ROWS] + more)


def _reads(node: Node) -> str:
    if node.shape is not None:
        return f"leaf {node.shape} {node.dtype}"
    if not node.inputs:
        return ""
    return "-> " + ", ".join("none" if edge is None else str(edge) for edge in node.inputs)
