"""Running an answer to `penalised_step`."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.lesson_05_higher_order_gradients.surroundings import changed, facts_about
from course_utils.checks.observers.runs import notice
from course_utils.checks.scenes.lesson_05_higher_order_gradients.penalised_step import regularised
from course_utils.graph.alive import Graphs


def observe(answer: Answer, case: Case) -> Observation:
    model, optimizer, batches = regularised(case)
    graphs, alive, totals = Graphs(), [], []
    runs: list[None] = []
    steps: list[None] = []

    def ran(module: nn.Module, given: Any, result: torch.Tensor) -> None:
        runs.append(None)
        graphs.add(result)

    notice(model, ran, name="forwards")
    optimizer.register_step_pre_hook(lambda *given: steps.append(None))
    parameters, before = list(model.parameters()), facts_about(model)
    for (inputs, targets), weight in zip(batches, case.given["weights"], strict=True):
        totals.append(plain(answer(model, optimizer, inputs, targets, weight)))
        alive.append(graphs.alive())
    kept = any(parameter.grad is not None and parameter.grad.requires_grad for parameter in parameters)
    return {
        "totals": totals,
        "alive": alive,
        "forwards": len(runs),
        "steps": len(steps),
        "recorded grad": kept,
        "parameters": [plain(parameter) for parameter in parameters],
        "left": changed(before, model),
    }
