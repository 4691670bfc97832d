"""Predictions of lesson 03, settled by running what the exercise shows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from course_utils.checks.exercise import Exercise, Misconception
from course_utils.checks.lessons.predictions import Table, one_case, raises
from course_utils.graph.alive import Graphs, Memory

LESSON = "03_graph_freeing"


# Which second backward raises?


def _twice(forward: Callable[..., torch.Tensor]) -> None:
    loss = forward(torch.rand(2, 3, requires_grad=True))
    loss.backward()
    loss.backward()


def _new_forward() -> None:
    x = torch.rand(2, 3, requires_grad=True)
    for _ in range(2):
        x.exp().sum().backward()


def _shared(trunk: Callable[..., torch.Tensor]) -> None:
    h = trunk(torch.rand(2, 3, requires_grad=True))
    h.sin().sum().backward()
    (h + 1).sum().backward()


def _only_the_lower_part() -> None:
    h = torch.rand(2, 3, requires_grad=True).exp()
    y = h.sin().sum()
    torch.autograd.grad(y, h)
    (h + 1).sum().backward()


SECOND: dict[str, Callable[[], None]] = {
    "plus_one": partial(_twice, lambda x: (x + 1).sum()),
    "exp": partial(_twice, lambda x: x.exp().sum()),
    "mean_of_rows": partial(_twice, lambda x: x.t().reshape(6).mean()),
    "times_three": partial(_twice, lambda x: (3 * x).sum()),
    "times_data": partial(_twice, lambda x: (x * torch.ones(2, 3)).sum()),
    "detached_exp": partial(_twice, lambda x: (x.exp().detach() - x).sum()),
    "new_forward": _new_forward,
    "shared_exp": partial(_shared, lambda x: x.exp()),
    "shared_sum": partial(_shared, lambda x: x + 2),
    "upper_part_first": _only_the_lower_part,
}


SECOND_BACKWARD = Table(lambda: {name: raises(action) for name, action in SECOND.items()})
_CALLS_TWICE = ("plus_one", "exp", "mean_of_rows", "times_three", "times_data", "detached_exp")

predict_second_backward = Exercise(
    id="predict_second_backward",
    title="Which second backward raises?",
    lesson=LESSON,
    difficulty=1,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=SECOND_BACKWARD.judge,
    hints=(
        "The error comes from a node that needs a saved tensor that is gone. A node that saves nothing cannot raise.",
        "For each entry list the nodes that both passes run. Ask of each whether its backward needs any number.",
        "A product needs both factors, a constant factor too; exp needs its result. A sum, a difference, a mean, "
        "a transpose or a reshape needs no numbers. Then ask: did the first pass run that very node?",
    ),
    misconceptions=(
        Misconception(
            "only once",
            "You said that every second backward() through the same loss raises. Some of these graphs saved nothing, "
            "so there is nothing that a second pass could miss.",
            SECOND_BACKWARD.but(**dict.fromkeys(_CALLS_TWICE, True)),
        ),
        Misconception(
            "constants are free",
            "You treated a product with a constant like a sum. Its backward multiplies by the constant, so the node "
            "keeps the constant until a pass has run.",
            SECOND_BACKWARD.but(times_three=False, times_data=False),
        ),
        Misconception(
            "any shared node",
            "You said that two losses on a shared part always clash. They clash where the shared part saved something.",
            SECOND_BACKWARD.but(shared_sum=True),
        ),
    ),
)

# What is still alive?


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


ALIVE: dict[str, Callable[[], bool]] = {
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


STILL_ALIVE = Table(lambda: {name: settle() for name, settle in ALIVE.items()})

predict_alive = Exercise(
    id="predict_alive",
    title="What is still alive?",
    lesson=LESSON,
    difficulty=2,
    minutes=10,
    points=2,
    call=None,
    cases=one_case,
    judge=STILL_ALIVE.judge,
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
            STILL_ALIVE.but(node_backward=False),
        ),
        Misconception(
            "del deletes memory",
            "You said that `del b` ends b's memory. `del` takes away a name. Other references may remain.",
            STILL_ALIVE.but(memory_del=False, memory_retain=False),
        ),
        Misconception(
            "a small view is small",
            "You took one number to keep one number alive. Look at whose memory that number lies in.",
            STILL_ALIVE.but(memory_one_number=False),
        ),
        Misconception(
            "every result is saved",
            "You said that c's memory outlives the name c. Look at what the one operation that uses c saves.",
            STILL_ALIVE.but(memory_of_c=True),
        ),
    ),
)
