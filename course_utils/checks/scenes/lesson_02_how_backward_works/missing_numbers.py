"""The pass of `missing_numbers`, and which of its numbers the task's picture leaves out."""

from __future__ import annotations

import torch

from course_utils.graph.events import Gradient
from course_utils.graph.record import record_backward
from course_utils.graph.recording import Recording

# The letters that stand in the picture for what an edge brings, by the result whose node the edge leaves and the place
# of the input that it leads to; and the one for what a node receives, by that node's result.
SENT = {"A": ("t", 1), "B": ("s", 1), "D": ("p", 0)}
RECEIVED = {"C": "p"}


def passed() -> Recording:
    """Return the pass, run anew. All its numbers are scalars."""
    a, c = (torch.tensor(number, requires_grad=True) for number in (3.0, 7.0))
    p = a * torch.tensor(4.0)
    s = p - c
    t = s * p
    out = 2 * t
    return record_backward(out, a=a, c=c, p=p, s=s, t=t, out=out)


def node_of(recording: Recording, name: str) -> int:
    """Return the number of the node that made a named result."""
    (node,) = [node for node, names in recording.made.items() if name in names]
    return node


def missing(recording: Recording) -> dict[str, float]:
    """Return the numbers that the picture leaves out, by their letters."""
    events = {event.node: event for event in recording.events}
    found = {letter: events[node_of(recording, name)].sent[place] for letter, (name, place) in SENT.items()}
    found |= {letter: events[node_of(recording, name)].received[0] for letter, name in RECEIVED.items()}
    return {letter: _number(found[letter]) for letter in sorted(found)}


def _number(gradient: Gradient | None) -> float:
    assert gradient is not None
    assert isinstance(gradient.values, float)
    return gradient.values
