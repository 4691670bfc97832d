"""Watching a training loop: forward runs, passes, and what is alive at each step."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Observation, Value
from course_utils.checks.observers.passes import count_passes
from course_utils.checks.observers.runs import Told, notice
from course_utils.graph.alive import Graphs, Memory, tensors_in
from course_utils.graph.saved import Saved, scan
from course_utils.graph.trace import nodes_behind


class Below:
    """The nodes below the one that made a tensor. They are held, and the top is not: it tells who else holds them."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._top, self._nodes = Graphs(), nodes_behind(tensor)[1:]
        self._top.add(tensor)

    def saved(self) -> Saved:
        """Return what the nodes keep, leaves aside; nothing where nobody holds the graph any more."""
        return scan(self._nodes if self._top.alive() else [])


class Loop:
    """What the runs of a model's last layer and an optimizer's steps show of a training loop.

    Nothing that is watched is kept alive by being watched. `told` is called after each run as well.
    """

    def __init__(self, last: nn.Module, optimizer: torch.optim.Optimizer, told: Told | None = None) -> None:
        self._graphs, self._states, self._results = Graphs(), Graphs(), Memory()
        self._latest: Below | None = None
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
        self._latest = Below(tensor)
        self._graphs.add(tensor)
        self._states.add(*state)  # made by nodes of its own: who holds it holds no node of the outputs
        self._results.add(tensor)
        count_passes(tensor, self._reached)
        if self._told is not None:
            self._told(module, given, result)

    def _stepped(self, *given: Any) -> None:
        without = all(parameter.grad is None or not parameter.grad.any() for parameter in self._own)
        entries = self._latest.saved() if self._latest is not None else ()
        kept = sum(entry.state in ("held", "modified") and not entry.leaf for entry in entries)
        alive = {"graphs": self._graphs.alive(), "states": self._states.alive(), "results": self._results.alive()}
        self._steps.append({"kept": kept, **alive, "no gradient": without})

    def seen(self) -> Observation:
        """Return the runs, the passes that reached a result, the steps, and what is alive now."""
        left = {"graphs": self._graphs.alive(), "results": self._results.alive()}
        return {"runs": self._runs, "reached": len(self._reached), "steps": self._steps, "left alive": left}


def plain_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor under what `torch.func` wraps around it: the wrapper has no memory of its own."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor
