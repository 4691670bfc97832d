"""One backward pass as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

from course_utils.graph import captions, factors
from course_utils.graph.events import Event, Failure
from course_utils.graph.forward import Forward
from course_utils.graph.log import Log
from course_utils.graph.saved import Saved
from course_utils.graph.trace import Graph, shortened


class Recording(msgspec.Struct, frozen=True, dict=True):
    """One backward pass over `graph`: an event for each node that ran, and the failure if the pass ended early.

    `saved` is what the graph kept before the pass, `made` the names of results and leaves by node number, `log` what
    was noted while it ran, `forward` what was known of the forward pass. A Recording holds numbers and names only;
    it keeps no tensor and no node alive. `own` says that the engine was a learner's: what its nodes keep is not seen,
    nor are the parts of a sum.
    """

    graph: Graph
    saved: Saved
    made: Mapping[int, tuple[str, ...]]
    log: Log
    failure: Failure | None
    forward: Forward
    own: bool = False

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """What each node did, in the order in which they ran. Made of the log when first read."""
        return self.log.events(self.saved)

    def captions(self) -> list[str]:
        """Return a sentence or two for each event, and one for the failure."""
        tell = captions.of_own_event if self.own else captions.of_event
        told = [tell(self.graph, self.made, event) for event in self.events]
        return told if self.failure is None else [*told, captions.of_failure(self.graph, self.failure)]

    def factor(self, event: Event, position: int) -> str:
        """Return by what `event`'s node multiplied what it sent to input `position`, as `factors.factor` tells it."""
        return factors.factor(self.graph, self.saved.tensors, self.forward.exponents, event, position)

    def __str__(self) -> str:
        told = self.captions()
        rows = [f"{number:>{len(str(len(told)))}}. {text}" for number, text in enumerate(told, 1)]
        return "\n".join([shortened(rows, "steps") or "nothing ran", repr(self)])

    def __repr__(self) -> str:
        after = self.events[-1].bytes if self.events else self.saved.bytes
        ended = "" if self.failure is None else f", ended by {self.failure.type}"
        ran = f"{len(self.events)} of {len(self.graph.nodes)} nodes"
        if self.own:
            return f"Recording of {ran}{ended}, by an engine of your own"
        kept = f"besides leaves the graph kept {self.saved.bytes:,} bytes before, {after:,} after"
        return f"Recording of {ran}{ended}; {kept}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))
