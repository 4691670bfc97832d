"""`record_backward`: run one real backward pass and keep what happened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from operator import setitem
from typing import Any, TypeAlias

import torch

from course_utils.graph.events import Failure
from course_utils.graph.forward import forward_of
from course_utils.graph.log import NOTHING, Arrival, Gradients, Log, Turn
from course_utils.graph.naming import check_names, made_by, named_at
from course_utils.graph.own import is_own
from course_utils.graph.own_pass import record_own
from course_utils.graph.recording import Recording
from course_utils.graph.saved import Saved, scan, still_holds
from course_utils.graph.trace import Edge, Graph, LiveNode, check_tensors, describe, nodes_from, roots_of

Tensors: TypeAlias = Sequence[torch.Tensor | None]


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

    A result of your own engine (lesson 11) has its own `backward` run, and is watched by its hooks, as `own_pass` says.

    An error in the pass does not raise: the recording ends with it, as `failure`. Raises TypeError where a loss or
    a named thing is no tensor, and GraphTooLarge above MAX_NODES nodes.
    """
    if is_own(loss):
        return record_own(loss, gradient, retain_graph, create_graph or inputs is not None, names)
    losses = [loss] if isinstance(loss, torch.Tensor) else list(loss)
    check_tensors(losses)
    check_names(names, "record_backward")
    roots = roots_of(losses)
    nodes = nodes_from(roots)
    graph, named, saved = describe(nodes, roots), named_at(nodes, names), scan(nodes, names=names, values=True)
    forward = forward_of(graph, nodes, named)
    recorder = _Recorder(nodes, graph)
    failure = None
    handles: list[Any] = []
    try:
        seeds = _seeds(losses, gradient)
        recorder.seed(seeds)
        recorder.watch(handles)
        torch.autograd.backward(losses, seeds, retain_graph, create_graph, inputs=inputs)
    except Exception as error:  # what the engine raises, or a hook, belongs to the recording
        failure = Failure(type(error).__name__, str(error), recorder.broke_off(inputs))
    finally:
        for handle in handles:
            handle.remove()
    return Recording(graph, saved, made_by(named), recorder.log(saved), failure, forward)


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


class _Recorder:
    """Collects the turns of a pass from a hook on each node. What it does is paid at every node, so it is little."""

    def __init__(self, nodes: list[LiveNode], graph: Graph) -> None:
        self._nodes, self._graph = nodes, graph
        self._gradients = Gradients()
        self._started: dict[int, Any] = {}  # roots and leaves at work
        self._turns: list[Turn] = []
        self._came: list[list[Arrival]] = [[] for _ in nodes]
        self._on_the_way: dict[int, torch.Tensor] = {}  # gradients that wait to be received, by number

    def seed(self, seeds: Iterable[Any]) -> None:
        for edge, tensor in zip(self._graph.outputs, seeds, strict=True):
            if isinstance(tensor, torch.Tensor):
                self._send(tensor, edge, None, None, None, NOTHING)

    def watch(self, handles: list[Any]) -> None:
        """Put a hook on each node, two on leaves and on roots, and add their handles to `handles`."""
        roots = {edge.node for edge in self._graph.outputs if edge is not None}
        for node, described in zip(self._nodes, self._graph.nodes, strict=True):
            index = described.index
            if described.shape is not None:
                leaf = node.variable
                handles.append(node.register_prehook(partial(self._leaf_starts, index, leaf)))
                handles.append(node.register_hook(partial(self._leaf_ends, index, leaf)))
                continue
            if index in roots:
                handles.append(node.register_prehook(partial(setitem, self._started, index)))
            handles.append(node.register_hook(partial(self._ends, index, described.inputs)))

    def broke_off(self, inputs: Any) -> int | None:
        """Return the node at which a pass over `inputs` ended early; None where that cannot be said.

        A leaf and a root say that they start. Any other node, or one with a hook of somebody's that failed, had got all
        its gradients; among such nodes the engine takes the one that was made last, and leaves before all others.
        """
        if self._started or not self._turns:
            return next(reversed(self._started), None)
        ended = {turn.node for turn in self._turns}
        waits = {edge.node for start, edge in self._graph.edges if start not in ended}
        made = {index: self._nodes[index]._sequence_nr() for index in self._needed(inputs) - ended - waits}
        latest = max(made.values(), default=None)
        last = [index for index, number in made.items() if number == latest]
        return last[0] if len(last) == 1 else None

    def _needed(self, inputs: Any) -> set[int]:
        """Return the nodes that a pass runs: all, or those on a way to `inputs`, leaves among these included."""
        if inputs is None:
            return set(range(len(self._nodes)))
        number = {node: index for index, node in enumerate(self._nodes)}
        roots = roots_of([inputs] if isinstance(inputs, torch.Tensor) else inputs)
        reached = [number[root[0]] for root in roots if root is not None and root[0] in number]
        needed = {index for index in reached if self._graph.nodes[index].is_leaf}
        users: dict[int, list[int]] = {}
        for start, edge in self._graph.edges:
            users.setdefault(edge.node, []).append(start)
        for index in reached:  # the list grows while it is read
            new = set(users.get(index, ())) - needed
            needed |= new
            reached += new
        return needed

    def log(self, saved: Saved) -> Log:
        """Return what happened, given what the nodes had saved. To be called once, after the pass."""
        to_free: dict[int, list[str]] = {}
        for entry in saved:
            if entry.state not in ("freed", "attribute"):
                to_free.setdefault(entry.node, []).append(entry.name)
        ran = {turn.node for turn in self._turns}
        freed = {
            node: tuple(names)
            for node, names in to_free.items()
            if node in ran and not still_holds(self._nodes[node], names[0])
        }
        return Log(self._turns, self._gradients.read(), freed)

    def _leaf_starts(self, index: int, leaf: torch.Tensor, gradients: Tensors) -> None:
        # The gradient is looked at now. While nothing else holds it, PyTorch may make it `.grad` without a copy.
        turn = Turn(index, *self._receive(index, gradients))
        turn.before = self._gradients.add(leaf.grad)
        self._started[index] = turn

    def _leaf_ends(self, index: int, leaf: torch.Tensor, sent: Tensors, gradients: Tensors) -> None:
        turn = self._started.pop(index)
        turn.after = self._gradients.add(leaf.grad, gradients[0], _number(turn.came, turn.received))
        self._turns.append(turn)

    def _ends(self, index: int, edges: Sequence[Edge | None], sent: Tensors, gradients: Tensors) -> None:
        if self._started:
            self._started.pop(index, None)
        came, received, hooked = self._receive(index, gradients)
        seen, number = gradients[0], _number(came, received)
        numbers = [
            self._send(tensor, edge, index, at, seen, number)
            for at, (tensor, edge) in enumerate(zip(sent, edges, strict=False))
        ]
        self._turns.append(Turn(index, came, received, hooked, numbers))

    def _receive(self, index: int, gradients: Tensors) -> tuple[Sequence[Arrival], Sequence[int] | None, bool]:
        """Return what came to a node, what it received as `Turn` has it, and whether a hook changed it."""
        came = self._came[index]
        self._came[index] = []
        waiting = self._on_the_way
        if len(came) == 1 == len(gradients):
            ((_, _, _, number),) = came
            tensor = waiting.pop(number)
            if tensor is gradients[0]:
                return came, None, False
            waiting[number] = tensor
        numbers, hooked = [], False
        for output, gradient in enumerate(gradients):
            parts = {arrival[3]: waiting.pop(arrival[3]) for arrival in came if arrival[0] == output}
            known = [number for number, part in parts.items() if part is gradient] if len(parts) == 1 else []
            if not known:
                hooked = hooked or not _is_sum(gradient, list(parts.values()))
            numbers += known or [self._gradients.add(gradient)]
        return came, numbers, hooked

    def _send(
        self,
        tensor: torch.Tensor | None,
        edge: Edge | None,
        node: int | None,
        position: int | None,
        received: torch.Tensor | None,
        known: int,
    ) -> int:
        if tensor is None or edge is None:
            return NOTHING
        number = self._gradients.add(tensor, received, known)
        self._on_the_way[number] = tensor
        self._came[edge.node].append((edge.output, node, position, number))
        return number


def _number(came: Sequence[Arrival], received: Sequence[int] | None) -> int:
    """Return the number of the first gradient that a node received."""
    return came[0][3] if received is None else received[0]


def _is_sum(received: torch.Tensor | None, parts: Sequence[torch.Tensor]) -> bool:
    """Say whether `received` is what the engine makes of `parts`: it adds them in the order in which they come."""
    if received is None or not parts:
        return True  # nothing came, or nothing is known of it
    try:
        with torch.no_grad():
            total = parts[0]
            for part in parts[1:]:
                total = total + part
            return torch.equal(total, received) or bool(((total == received) | (received != received)).all())
    except RuntimeError:  # sparse and dense, or tensors without numbers
        return True
