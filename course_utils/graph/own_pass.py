"""One real backward pass of an engine that a learner wrote, watched through the interface of lesson 11.

Its hooks tell of a pass what PyTorch's would: which gradient was complete, when, and what it was. So each tensor that
has a name is watched, the result, and all leaves. What the nodes between them do, what they keep, and the parts of a
sum before they are added, the interface does not show; nothing is put in their place. Hooks that a tensor had before
run first, and what they left is what is seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch

from course_utils.graph.events import Failure
from course_utils.graph.forward import Forward
from course_utils.graph.log import NOTHING, Gradients, Log, Turn
from course_utils.graph.own import is_leaf, is_own, own_graph, own_values, places_behind
from course_utils.graph.recording import Recording
from course_utils.graph.saved import Saved
from course_utils.graph.trace import Graph

_HOOKS = (
    "record_backward() watches a pass of your own engine by its hooks, and {} has no `register_hook`. "
    "It is stage 8 of lesson 11."
)
_ONLY = "an engine of your own takes `gradient` and `retain_graph`; create_graph and inputs are PyTorch's"


def record_own(
    result: Any, gradient: Any, retain_graph: bool | None, others: bool, names: Mapping[str, Any]
) -> Recording:
    """Run `result.backward` once and return what its hooks told.

    `others` says that arguments were given which only PyTorch's pass has. Raises TypeError for those, where a named
    thing is no tensor of the engine, and where there are no hooks; GraphTooLarge as `own_graph` does.
    """
    if others:
        raise TypeError(_ONLY)
    for name, tensor in names.items():
        if not is_own(tensor):
            kind = type(tensor).__name__
            raise TypeError(f"record_backward() got {name}={kind}; keyword arguments name tensors, as in x=x")
    graph, made = own_graph([result], names)
    places = places_behind([result])
    number = {id(place): index for index, place in enumerate(places)}
    watched = {number[id(leaf)]: leaf for leaf in places if is_leaf(leaf)}
    for tensor in (*names.values(), result):
        index = number.get(id(tensor.grad_fn))
        if index is not None:
            watched[index] = tensor
    bare = next((tensor for tensor in watched.values() if not hasattr(tensor, "register_hook")), None)
    if bare is not None:
        raise TypeError(_HOOKS.format(type(bare).__name__))
    forward = Forward(graph, (), own_values(names, made), {})
    notes = _Notes(watched)
    failure = None
    given = {} if retain_graph is None else {"retain_graph": retain_graph}
    handles: list[Any] = []
    try:
        notes.watch(handles)
        result.backward(*() if gradient is None else (gradient,), **given)
    except Exception as error:  # what the engine raises, or a hook, belongs to the recording
        failure = Failure(type(error).__name__, str(error), None)
    finally:
        for handle in handles:
            handle.remove()
    unseen = Saved((), len(graph.nodes))
    return Recording(graph, unseen, made, notes.log(graph), failure, forward, own=True)


class _Notes:
    """What the hooks of a pass note: which tensor had its gradient, and which gradient that was, in order."""

    def __init__(self, watched: Mapping[int, Any]) -> None:
        self._watched = watched
        self._gradients = Gradients()
        self._seen: list[tuple[int, int, int]] = []  # place, gradient, and the `.grad` of a leaf before

    def watch(self, handles: list[Any]) -> None:
        """Put a hook on each tensor, and add the handles to `handles`."""
        for index, tensor in self._watched.items():
            handles.append(tensor.register_hook(partial(self._note, index)))

    def log(self, graph: Graph) -> Log:
        """Return what happened. An edge that brings all of a gradient is known by what arrived; a part of a sum is not.

        To be called once, after the pass.
        """
        parts = Counter(edge.node for _, edge in graph.edges)
        arrived = {place: gradient for place, gradient, _ in self._seen}
        turns = []
        for place, gradient, before in self._seen:
            node = graph.nodes[place]
            sent = [
                arrived.get(edge.node, NOTHING) if edge is not None and parts[edge.node] == 1 else NOTHING
                for edge in node.inputs
            ]
            after = self._gradients.add(_read(self._watched[place].grad)) if node.is_leaf else NOTHING
            came = ((0, None, None, gradient),) if place == 0 else ()
            turns.append(Turn(place, came, [gradient], False, sent, before, after))
        return Log(turns, self._gradients.read(), {})

    def _note(self, place: int, gradient: Any) -> None:
        leaf = self._watched[place]
        before = self._gradients.add(_read(leaf.grad)) if leaf.grad_fn is None else NOTHING
        self._seen.append((place, self._gradients.add(_read(gradient)), before))


def _read(gradient: Any) -> torch.Tensor | None:
    """Return the numbers of a gradient, a tensor of the engine's or an array, in a tensor of their own."""
    if gradient is None:
        return None
    return torch.tensor(np.asarray(gradient.numpy() if hasattr(gradient, "numpy") else gradient))
