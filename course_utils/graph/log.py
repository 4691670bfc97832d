"""What is noted while a backward pass runs, and the events that it tells of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import torch

from course_utils.graph.events import WHOLE, Contribution, Event, Gradient
from course_utils.graph.memory import dtype_name, shape_of
from course_utils.graph.saved import Saved

NOTHING = -1  # the number of a gradient that is None

# A gradient that came to a node: at which output, from which node and input (None: the pass starts here), its number.
Arrival: TypeAlias = tuple[int, int | None, int | None, int]


class Turn(msgspec.Struct, gc=False):
    """What one node did. Gradients are given by their numbers; `received` is None where it was the one that came."""

    node: int
    came: Sequence[Arrival]
    received: Sequence[int] | None
    hooked: bool
    sent: Sequence[int] = ()
    before: int = NOTHING
    after: int = NOTHING


class Log(msgspec.Struct, frozen=True):
    """The turns of a pass in order, the gradients that they name, and what nodes gave up, by node."""

    turns: Sequence[Turn]
    gradients: Sequence[tuple[tuple[int, ...], torch.dtype, float | None, Any]]
    freed: Mapping[int, tuple[str, ...]]

    def events(self, saved: Saved) -> tuple[Event, ...]:
        """Return an event for each turn, given what the graph kept before the pass."""
        gradients: list[Any] = [
            Gradient(shape, dtype_name(dtype), norm, values) for shape, dtype, norm, values in self.gradients
        ]
        gradients.append(None)  # number -1, NOTHING, is the last
        entries = {(entry.node, entry.name): entry for entry in saved if entry.storage is not None}
        holders = Counter(entry.storage for entry in entries.values() if not entry.leaf)
        kept_bytes = saved.bytes
        events = []
        for turn in self.turns:
            freed = self.freed.get(turn.node, ())
            for name in freed:
                entry = entries.get((turn.node, name))
                if entry is not None and not entry.leaf:
                    holders[entry.storage] -= 1
                    kept_bytes -= 0 if holders[entry.storage] else entry.bytes
            numbers = [turn.came[0][3]] if turn.received is None else turn.received
            arrived = tuple(
                tuple(Contribution(node, at, gradients[number]) for to, node, at, number in turn.came if to == output)
                for output in range(len(numbers))
            )
            received, sent = (tuple(gradients[number] for number in given) for given in (numbers, turn.sent))
            before, after = gradients[turn.before], gradients[turn.after]
            events.append(Event(turn.node, arrived, received, sent, before, after, turn.hooked, freed, kept_bytes))
        return tuple(events)


class Gradients:
    """What is kept of gradients while the pass runs, by number."""

    def __init__(self) -> None:
        self._kept: list[tuple[tuple[int, ...], torch.dtype, Any, Any]] = []

    def add(self, tensor: torch.Tensor | None, seen: torch.Tensor | None = None, number: int = NOTHING) -> int:
        """Keep shape, dtype, norm and a few values of a tensor, and return its number.

        Where it holds the numbers of `seen`, which is kept as `number`, in the same memory, it has that one's norm:
        most operations of a Transformer pass on what they received, in another shape.
        """
        if tensor is None:
            return NOTHING
        values = norm = None
        try:
            if tensor.requires_grad:
                tensor = tensor.detach()
            if tensor.layout is torch.strided:
                few = tensor.numel() <= WHOLE
                if seen is not None and not few and _same_numbers(tensor, seen):
                    norm = self._kept[number][2]
                else:
                    norm = torch.linalg.vector_norm(tensor)
                if few:
                    values = tensor.tolist()
            elif tensor.layout is torch.sparse_coo:
                norm = torch.linalg.vector_norm(tensor.coalesce().values())
            # A norm that stays a tensor parts the memory that the pass frees. But on a GPU, reading it would wait.
            if isinstance(norm, torch.Tensor) and norm.is_cpu:
                norm = norm.item()
        except (RuntimeError, NotImplementedError):  # a kind of tensor that has no numbers to read
            pass
        kept = self._kept
        kept.append((shape_of(tensor), tensor.dtype, norm, values))
        return len(kept) - 1

    def read(self) -> list[tuple[tuple[int, ...], torch.dtype, float | None, Any]]:
        """Return them all, in the order of their numbers. To be called after the pass."""
        return [(shape, dtype, _number(norm), values) for shape, dtype, norm, values in self._kept]


def _same_numbers(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Say whether two tensors are views of all of the same memory, each element once, in whatever order."""
    if one is other:
        return True
    address = one.data_ptr()
    return (
        address != 0
        and address == other.data_ptr()
        and one.numel() == other.numel()
        and one.dtype is other.dtype
        and _each_once(one)
        and _each_once(other)
    )


def _each_once(tensor: torch.Tensor) -> bool:
    """Say whether no two elements of a tensor share memory. The usual case needs no long look."""
    return tensor.is_contiguous() or not torch._debug_has_internal_overlap(tensor)


def _number(norm: Any) -> float | None:
    try:
        return norm.item() if isinstance(norm, torch.Tensor) else norm
    except RuntimeError:  # a tensor without numbers
        return None
