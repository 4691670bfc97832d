"""Watching a training loop: forward runs, passes, and what is alive at each step."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Observation, Value
from course_utils.checks.observers.passes import count_passes
from course_utils.graph.alive import Graphs
from course_utils.graph.saved import saved


class Loop:
    """What a model's forward runs and an optimizer's steps show of a training loop."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._graphs = Graphs()
        self._results: list[torch.Tensor] = []  # of this step, kept so that their graphs can be asked
        self._forwards = 0
        self._passes: set[int] = set()
        self._steps: list[dict[str, Value]] = []
        self._own = list(model.parameters())
        model.register_forward_hook(self._forward)
        optimizer.register_step_pre_hook(self._step)

    def _forward(self, module: nn.Module, given: Any, result: Any) -> None:
        tensor = result[0] if type(result) is tuple else result
        self._forwards += 1
        self._graphs.add(tensor)
        self._results = [tensor]
        count_passes(tensor, self._passes)

    def _step(self, *given: Any) -> None:
        without = all(parameter.grad is None or not parameter.grad.any() for parameter in self._own)
        kept = sum(entry.state in ("held", "modified") and not entry.leaf for entry in saved(*self._results))
        self._results = []
        self._steps.append({"kept": kept, "graphs": self._graphs.alive(), "no gradient": without})

    def seen(self) -> Observation:
        return {"forwards": self._forwards, "passes": len(self._passes), "steps": self._steps}
