"""One backward pass as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from course_utils.graph import captions
from course_utils.graph.saved import Saved
from course_utils.graph.trace import Graph, shortened

# Gradients with at most so many elements are recorded whole, larger ones by their norm.
WHOLE = 16

Values: TypeAlias = Any  # a number, or nested lists of numbers as `tolist` gives them


class Gradient(msgspec.Struct, frozen=True, gc=False):
    """What is recorded of a gradient: its 2-norm, and its values where there are at most WHOLE of them.

    `norm` and `values` are None for tensors that have none to read (fake ones, say).
    """

    shape: tuple[int, ...]
    dtype: str
    norm: float | None
    values: Values = None


class Contribution(msgspec.Struct, frozen=True, gc=False):
    """One gradient that arrived at a node: from input `input` of node `node`, or the seed, where both are None."""

    node: int | None
    input: int | None
    gradient: Gradient


class Event(msgspec.Struct, frozen=True):
    """One node's turn.

    `arrived` holds for each output of the operation what came for it, in the order of arrival. `received` is what
    the node got: the sum, unless a hook changed it (`hooked`). `sent` has one entry for each input, None where
    nothing went. `before` and `after` are the `.grad` of a leaf. `freed` names what the node had saved and gave
    up after its turn; `bytes` is what the graph kept then, in bytes.
    """

    node: int
    arrived: tuple[tuple[Contribution, ...], ...]
    received: tuple[Gradient | None, ...]
    sent: tuple[Gradient | None, ...]
    before: Gradient | None
    after: Gradient | None
    hooked: bool
    freed: tuple[str, ...]
    bytes: int


class Failure(msgspec.Struct, frozen=True):
    """The error that ended a pass, and the node that had received its gradients; None if there was no such node."""

    type: str
    message: str
    node: int | None


class Recording(msgspec.Struct, frozen=True):
    """One backward pass over `graph`: an event for each node that ran, and the failure if the pass ended early.

    `saved` is what the graph kept before the pass, `made` the names of results and leaves by node number. A
    Recording holds numbers and names only; it keeps no tensor and no node alive.
    """

    graph: Graph
    saved: Saved
    made: Mapping[int, tuple[str, ...]]
    events: tuple[Event, ...]
    failure: Failure | None

    def captions(self) -> list[str]:
        """Return a sentence or two for each event, and one for the failure."""
        told = [captions.of_event(self.graph, self.made, event) for event in self.events]
        return told if self.failure is None else [*told, captions.of_failure(self.graph, self.failure)]

    def __str__(self) -> str:
        told = self.captions()
        rows = [f"{number:>{len(str(len(told)))}}. {text}" for number, text in enumerate(told, 1)]
        return "\n".join([shortened(rows, "steps") or "nothing ran", repr(self)])

    def __repr__(self) -> str:
        after = self.events[-1].bytes if self.events else self.saved.bytes
        ended = "" if self.failure is None else f", ended by {self.failure.type}"
        ran = f"{len(self.events)} of {len(self.graph.nodes)} nodes"
        return f"Recording of {ran}{ended}; the graph kept {self.saved.bytes:,} bytes before and {after:,} after"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))
