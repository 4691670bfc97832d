"""`record_backward`: run one real backward pass and keep what happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from operator import setitem
from typing import Any, TypeAlias

import msgspec
import torch

from course_utils.graph.events import WHOLE, Contribution, Event, Failure, Gradient
from course_utils.graph.memory import dtype_name, shape_of
from course_utils.graph.naming import check_names, made_by
from course_utils.graph.recording import Recording
from course_utils.graph.saved import Saved, scan, still_holds
from course_utils.graph.trace import Edge, Graph, LiveNode, check_tensors, describe, nodes_from, roots_of

Tensors: TypeAlias = Iterable[torch.Tensor | None]


def record_backward(
    loss: torch.Tensor | Sequence[torch.Tensor],
    /,
    gradient: torch.Tensor | Sequence[torch.Tensor | None] | None = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: torch.Tensor | Sequence[torch.Tensor] | None = None,
    **names: torch.Tensor,
) -> Recording:
    """Run `torch.autograd.backward` once and return what happened, node by node.

    The arguments are those of `torch.autograd.backward`; further ones name tensors, as in
    `record_backward(loss, x=x, w=w)`, by other names than those arguments have. The pass is PyTorch's own: gradients
    are added to `.grad`, saved tensors are freed, hooks run, and all values are those of a plain pass. The recorder's
    hooks are removed afterwards.

    An error in the pass does not raise: the recording ends with it, as `failure`. Raises TypeError where a loss or
    a named thing is no tensor, and GraphTooLarge above MAX_NODES nodes.
    """
    losses = [loss] if isinstance(loss, torch.Tensor) else list(loss)
    check_tensors(losses)
    check_names(names, "record_backward")
    roots = roots_of(losses)
    nodes = nodes_from(roots)
    graph, made, saved = describe(nodes, roots), made_by(nodes, names), scan(nodes, names=names)
    recorder = _Recorder(nodes, graph, saved)
    failure = None
    handles: list[Any] = []
    try:
        seeds = _seeds(losses, gradient)
        recorder.seed(seeds)
        for index in range(len(nodes)):
            handles += recorder.watch(index)
        torch.autograd.backward(losses, seeds, retain_graph, create_graph, inputs=inputs)
    except Exception as error:  # what the engine raises, or a hook, belongs to the recording
        failure = Failure(type(error).__name__, str(error), recorder.at_work)
    finally:
        for handle in handles:
            handle.remove()
    return Recording(graph, saved, made, recorder.events(), failure)


def _seeds(losses: Sequence[torch.Tensor], gradient: Any) -> list[Any]:
    """Return a seed for each loss. A number's seed is made here, as PyTorch would: it is recognised when it arrives."""
    if gradient is None:
        gradient = [None] * len(losses)
    given = [gradient] if isinstance(gradient, torch.Tensor) else list(gradient)
    if len(given) != len(losses):
        raise ValueError(f"there are {len(losses)} losses but {len(given)} gradients to start from")
    return [
        torch.ones_like(loss) if seed is None and loss.requires_grad and loss.numel() == 1 else seed
        for loss, seed in zip(losses, given, strict=True)
    ]


NOTHING = -1  # the number of a gradient that is None


class _Gradients:
    """What is kept of gradients while the pass runs, by number. Norms are read after it: on a GPU, reading waits."""

    def __init__(self) -> None:
        self._facts: list[tuple[tuple[int, ...], torch.dtype, Any, torch.Tensor | None]] = []

    def add(self, tensor: torch.Tensor | None) -> int:
        """Keep shape, dtype, a few values and the norm of a tensor, and return its number."""
        if tensor is None:
            return NOTHING
        values = norm = None
        try:
            if tensor.requires_grad:
                tensor = tensor.detach()
            if tensor.layout is torch.strided:
                norm = torch.linalg.vector_norm(tensor)
                if tensor.numel() <= WHOLE:
                    values = tensor.tolist()
            elif tensor.layout is torch.sparse_coo:
                norm = torch.linalg.vector_norm(tensor.coalesce().values())
        except (RuntimeError, NotImplementedError):  # a kind of tensor that has no numbers to read
            pass
        facts = self._facts
        facts.append((shape_of(tensor), tensor.dtype, values, norm))
        return len(facts) - 1

    def read(self) -> list[Gradient]:
        return [Gradient(shape, dtype_name(dtype), _number(norm), values) for shape, dtype, values, norm in self._facts]


def _number(norm: torch.Tensor | None) -> float | None:
    try:
        return None if norm is None else float(norm.item())
    except RuntimeError:  # a tensor without numbers
        return None


class _Arrival(msgspec.Struct, gc=False):
    """A gradient on its way: from which input of which node, its number, and itself until it is received."""

    node: int | None
    input: int | None
    number: int
    tensor: torch.Tensor | None


class _Turn(msgspec.Struct, gc=False):
    """What one node did. Gradients are given by their numbers."""

    node: int
    arrived: list[list[_Arrival]]
    received: list[int]
    hooked: bool
    sent: list[int]
    before: int
    after: int


class _Recorder:
    """Collects the turns of a pass from two hooks on each node. What they do is paid at every node, so it is little."""

    def __init__(self, nodes: list[LiveNode], graph: Graph, saved: Saved) -> None:
        self._nodes, self._graph, self._saved = nodes, graph, saved
        self._gradients = _Gradients()
        self._started: dict[int, Any] = {}  # nodes at work
        self._turns: list[_Turn] = []
        self._on_the_way: dict[tuple[int, int], list[_Arrival]] = {}  # by node and output
        self._to_free: dict[int, list[str]] = {}
        self._freed: dict[int, tuple[str, ...]] = {}
        for entry in saved:
            if entry.state not in ("freed", "attribute"):
                self._to_free.setdefault(entry.node, []).append(entry.name)

    @property
    def at_work(self) -> int | None:
        """The node that has started and not finished."""
        return next(reversed(self._started), None)

    def seed(self, seeds: Iterable[Any]) -> None:
        for edge, tensor in zip(self._graph.outputs, seeds, strict=True):
            if isinstance(tensor, torch.Tensor):
                self._send(tensor, edge, None, None)

    def watch(self, index: int) -> Iterator[Any]:
        """Put both hooks on a node and yield their handles."""
        node, described = self._nodes[index], self._graph.nodes[index]
        if described.is_leaf:
            yield node.register_prehook(partial(self._leaf_starts, index, node))
            yield node.register_hook(partial(self._leaf_ends, index, node))
        else:
            yield node.register_prehook(partial(setitem, self._started, index))
            yield node.register_hook(partial(self._operation_ends, index, described.inputs))

    def events(self) -> tuple[Event, ...]:
        """Return what happened. To be called once, after the pass."""
        self._look_for_freed()
        gradients: list[Any] = [*self._gradients.read(), None]  # number -1, NOTHING, is the last
        entries = {(entry.node, entry.name): entry for entry in self._saved if entry.storage is not None}
        holders = Counter(entry.storage for entry in entries.values() if not entry.leaf)
        kept_bytes = self._saved.bytes
        events = []
        for turn in self._turns:
            freed = self._freed.get(turn.node, ())
            for name in freed:
                entry = entries.get((turn.node, name))
                if entry is not None and not entry.leaf:
                    holders[entry.storage] -= 1
                    kept_bytes -= 0 if holders[entry.storage] else entry.bytes
            arrived = tuple(
                tuple([Contribution(arrival.node, arrival.input, gradients[arrival.number]) for arrival in arrivals])
                for arrivals in turn.arrived
            )
            received = tuple([gradients[number] for number in turn.received])
            sent = tuple([gradients[number] for number in turn.sent])
            before, after = gradients[turn.before], gradients[turn.after]
            events.append(Event(turn.node, arrived, received, sent, before, after, turn.hooked, freed, kept_bytes))
        return tuple(events)

    def _leaf_starts(self, index: int, leaf: LiveNode, gradients: Tensors) -> None:
        # The gradient is looked at now. While nothing else holds it, PyTorch may make it `.grad` without a copy.
        self._started[index] = self._receive(index, gradients), self._gradients.add(leaf.variable.grad)

    def _leaf_ends(self, index: int, leaf: LiveNode, sent: Tensors, _: Tensors) -> None:
        (arrived, received, hooked), before = self._started.pop(index)
        after = self._gradients.add(leaf.variable.grad)
        self._ends(_Turn(index, arrived, received, hooked, [], before, after))

    def _operation_ends(self, index: int, edges: Sequence[Edge | None], sent: Tensors, gradients: Tensors) -> None:
        del self._started[index]
        arrived, received, hooked = self._receive(index, gradients)
        numbers = [
            self._send(tensor, edge, index, at) for at, (tensor, edge) in enumerate(zip(sent, edges, strict=False))
        ]
        self._ends(_Turn(index, arrived, received, hooked, numbers, NOTHING, NOTHING))

    def _ends(self, turn: _Turn) -> None:
        self._look_for_freed()
        self._turns.append(turn)

    def _look_for_freed(self) -> None:
        """Look what the last node gave up: it does so after its hooks, all at once, before the next node runs."""
        if self._turns:
            node = self._turns[-1].node
            names = self._to_free.get(node)
            if names and not still_holds(self._nodes[node]):
                self._freed[node] = tuple(names)

    def _receive(self, index: int, gradients: Tensors) -> tuple[list[list[_Arrival]], list[int], bool]:
        arrived, received, hooked = [], [], False
        for output, gradient in enumerate(gradients):
            arrivals = self._on_the_way.pop((index, output), [])
            if len(arrivals) == 1 and arrivals[0].tensor is gradient:
                received.append(arrivals[0].number)
            else:
                received.append(self._gradients.add(gradient))
                hooked = hooked or not _is_sum(gradient, [arrival.tensor for arrival in arrivals])
            for arrival in arrivals:
                arrival.tensor = None
            arrived.append(arrivals)
        return arrived, received, hooked

    def _send(self, tensor: torch.Tensor | None, edge: Edge | None, node: int | None, position: int | None) -> int:
        if tensor is None or edge is None:
            return NOTHING
        number = self._gradients.add(tensor)
        self._on_the_way.setdefault((edge.node, edge.output), []).append(_Arrival(node, position, number, tensor))
        return number


def _is_sum(received: torch.Tensor | None, parts: Sequence[torch.Tensor | None]) -> bool:
    """Say whether `received` is what the engine makes of `parts`: it adds them in the order in which they come."""
    known = [part for part in parts if part is not None]
    if received is None or not known:
        return True  # nothing came, or nothing is known of it
    try:
        with torch.no_grad():
            total = known[0]
            for part in known[1:]:
                total = total + part
            return torch.equal(total, received) or bool(((total == received) | (received != received)).all())
    except RuntimeError:  # sparse and dense, or tensors without numbers
        return True
