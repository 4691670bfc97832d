"""Watching a training loop: forward runs, passes, and what is alive at each step."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Observation, Value
from course_utils.checks.observers import telling
from course_utils.checks.observers.passes import count_passes
from course_utils.checks.observers.runs import Told, notice
from course_utils.graph.alive import Graphs, Memory, tensors_in
from course_utils.graph.saved import Saved, scan
from course_utils.graph.trace import ACCUMULATE, nodes_behind


class Below:
    """The nodes below the one that made a tensor. They are held, and the top is not: it tells who else holds them.

    Where graphs go on from run to run they share nodes, and are not `apart`: then the top alone tells.
    """

    def __init__(self, tensor: torch.Tensor, apart: bool = False) -> None:
        self._top, self._nodes = Graphs(), nodes_behind(tensor)[1:]
        self._top.add(tensor)
        self._inner = Graphs()
        own = (node for node in self._nodes if apart and type(node).__name__ != ACCUMULATE)
        self._marked = self._inner.add_own(own)

    def saved(self) -> Saved:
        """Return what the nodes keep, leaves aside; nothing where nobody holds the graph any more."""
        return scan(self._nodes if self._top.alive() else [])

    def let_go(self) -> None:
        """Hold the nodes no longer. Of one that lost its mark nobody could say whether it lives."""
        if self._inner.alive() < self._marked:
            telling.tell(telling.DECOY)
        self._nodes = []

    def alive(self) -> bool:
        """Say whether the graph is held by anybody else, at its top or, once the nodes were let go, further down."""
        return bool(self._top.alive() or (not self._nodes and self._inner.alive()))


class Loop:
    """What the runs of a model's last layer and an optimizer's steps show of a training loop.

    Nothing that is watched is kept alive by being watched. `told` is called after each run as well.
    """

    def __init__(self, last: nn.Module, optimizer: torch.optim.Optimizer, told: Told | None = None) -> None:
        self._states, self._results = Graphs(), Memory()
        self._graphs: list[Below] = []
        self._runs = 0
        self._reached: set[int] = set()
        self._steps: list[dict[str, Value]] = []
        self._own = list(last.parameters())
        self._told = told
        notice(last, self._ran, name="runs")
        # After the step: one that is given a closure has run it by then, and still holds its loss.
        optimizer.register_step_post_hook(self._stepped)

    def _ran(self, module: nn.Module, given: tuple[Any, ...], result: Any) -> None:
        self._runs += 1
        tensor, *state = (plain_tensor(it) for it in tensors_in((result,)))
        self._let_go()
        self._graphs = [*(graph for graph in self._graphs if graph.alive()), Below(tensor, apart=not state)]
        self._states.add(*state)  # made by nodes of its own: who holds it holds no node of the outputs
        self._results.add(tensor)
        count_passes(tensor, self._reached)
        if self._told is not None:
            self._told(module, given, result)

    def _stepped(self, *given: Any) -> None:
        without = all(parameter.grad is None or not parameter.grad.any() for parameter in self._own)
        entries = self._graphs[-1].saved() if self._graphs else ()
        kept = sum(entry.state in ("held", "modified", "packed") and not entry.leaf for entry in entries)
        alive = {"graphs": self._alive(), "states": self._states.alive(), "results": self._results.alive()}
        self._steps.append({"kept": kept, **alive, "no gradient": without})

    def seen(self) -> Observation:
        """Return the runs, the passes that reached a result, the steps, and what is alive now."""
        self._let_go()
        left = {"graphs": self._alive(), "results": self._results.alive()}
        return {"runs": self._runs, "reached": len(self._reached), "steps": self._steps, "left alive": left}

    def _let_go(self) -> None:
        for graph in self._graphs[-1:]:
            graph.let_go()

    def _alive(self) -> int:
        return sum(graph.alive() for graph in self._graphs)


def plain_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor under what `torch.func` wraps around it: the wrapper has no memory of its own."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor
