"""Judging `predict_alive`: what is still alive?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from course_utils.checks.exercise import Exercise, Misconception
from course_utils.checks.judges.lesson_03_graph_freeing import LESSON
from course_utils.checks.judges.predictions import Table, one_case
from course_utils.graph.alive import Graphs, Memory


def _alive(after: Callable[[dict[str, Any]], object], of: str) -> bool:
    """Run statements on the names a, b, c, loss and say whether b's memory, c's memory, or b's node is alive."""
    names: dict[str, Any] = {"a": torch.rand(1000, requires_grad=True)}
    names["b"] = names["a"].exp()
    names["c"] = names["b"] * 3
    names["loss"] = names["c"].sum()
    memory, graphs = Memory(), Graphs()
    memory.add(names["c" if of == "memory of c" else "b"])
    graphs.add(names["b"])
    kept = after(names)  # what the statements bind
    alive = graphs.alive() == 1 if of == "node" else memory.alive() > 0
    del kept
    return alive


def _delete(names: dict[str, Any], *which: str) -> None:
    for name in which:
        del names[name]


def _then(*which: str, make: Callable[[dict[str, Any]], object] = lambda names: None) -> Callable[..., object]:
    """Make something from the names, then delete some of them."""

    def after(names: dict[str, Any]) -> object:
        made = make(names)
        _delete(names, *which)
        return made

    return after


_ALIVE: dict[str, Callable[[], bool]] = {
    "memory_del": partial(_alive, _then("b", "c"), "memory"),
    "memory_of_c": partial(_alive, _then("c"), "memory of c"),
    "memory_backward": partial(_alive, _then("b", "c", make=lambda names: names["loss"].backward()), "memory"),
    "memory_retain": partial(
        _alive, _then("b", "c", make=lambda names: names["loss"].backward(retain_graph=True)), "memory"
    ),
    "memory_one_number": partial(_alive, _then("b", "c", "loss", make=lambda names: names["b"].detach()[:1]), "memory"),
    "node_backward": partial(_alive, _then("b", "c", make=lambda names: names["loss"].backward()), "node"),
    "node_item": partial(_alive, _then("b", "c", "loss", make=lambda names: names["loss"].item()), "node"),
    "node_total": partial(_alive, _then("b", "c", "loss", make=lambda names: 0 + names["loss"]), "node"),
    "node_detach": partial(_alive, _then("b", "c", "loss", make=lambda names: names["c"].detach()), "node"),
    "node_report": partial(
        _alive, _then("b", "c", "loss", make=lambda names: lambda loss=names["loss"]: loss.item()), "node"
    ),
}

_REASONS = {
    "memory_del": "loss refers to its graph, and in it exp keeps its result, which is b.",
    "memory_of_c": "The name was the only thing that held c: sum, the one operation that uses c, saves no tensor.",
    "memory_backward": "The pass freed what exp had saved, and the name b was deleted. Nothing else held it.",
    "memory_retain": "The pass retained, so exp still keeps its result.",
    "memory_one_number": "The view refers to the whole memory of b, 1000 numbers, whatever part it shows.",
    "node_backward": "A pass frees what nodes saved, and not the nodes. loss still refers to them.",
    "node_item": "item() gave a number, which refers to nothing, and the names are gone.",
    "node_total": "The sum made a node that refers to that of loss, and so on down to exp.",
    "node_detach": "The detached tensor has no graph, and the names are gone.",
    "node_report": "The function keeps loss as its default argument, and loss its graph.",
}

_STILL_ALIVE = Table(lambda: {name: settle() for name, settle in _ALIVE.items()}, _REASONS)

EXERCISE = Exercise(
    id="predict_alive",
    title="What is still alive?",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=_STILL_ALIVE.judge,
    debrief=_STILL_ALIVE.debrief,
    hints=(
        "Memory and nodes live as long as anything refers to them. Follow the references that are left.",
        "A tensor refers to its node, a node to the nodes before it and to what it saved. A backward pass lets go of "
        "what was saved, and of nothing else.",
        "For each entry write down: which names and objects are left; whether one of them has a graph; whether the "
        "nodes of that graph still have their saved tensors. exp saves its result, the product with 3 saves the 3, "
        "sum saves nothing. A view refers to the whole memory of its base.",
    ),
    misconceptions=(
        Misconception(
            "backward deletes the graph",
            "You said that the node of exp is gone after backward(). A pass frees what nodes saved; the name `loss` "
            "still refers to the graph, so its nodes are still there.",
            _STILL_ALIVE.but(node_backward=False),
        ),
        Misconception(
            "del deletes memory",
            "You said that `del b` ends b's memory. `del` takes away a name. Other references may remain.",
            _STILL_ALIVE.but(memory_del=False, memory_retain=False),
        ),
        Misconception(
            "a small view is small",
            "You said that b's memory is gone, as if one number of it kept one number alive. Look at whose memory that "
            "number lies in.",
            _STILL_ALIVE.but(memory_one_number=False),
        ),
        Misconception(
            "every result is saved",
            "You said that c's memory outlives the name c. Look at what the one operation that uses c saves.",
            _STILL_ALIVE.but(memory_of_c=True),
        ),
    ),
)
