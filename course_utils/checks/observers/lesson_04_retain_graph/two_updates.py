"""Running an answer to `two_updates`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Answer, Case, Observation, Value, plain
from course_utils.checks.observers.surroundings import Surroundings
from course_utils.checks.observers.passes import count_passes
from course_utils.checks.scenes.lesson_04_retain_graph.two_updates import two_headed
from course_utils.graph.saved import saved


def observe(answer: Answer, case: Case) -> Observation:
    trunk, heads, optimizers, batches = two_headed(case)
    parts = [trunk, *heads]
    forwards = [0, 0, 0]
    results: list[torch.Tensor] = []
    order: list[int] = []
    kept: list[int] = []
    returned: list[Value] = []
    passes: set[int] = set()

    def count(number: int) -> Callable[..., None]:
        def hook(module: nn.Module, given: Any, result: torch.Tensor) -> None:
            forwards[number] += 1
            results.append(result)
            if number == 0:
                count_passes(result, passes)

        return hook

    def step(number: int) -> Callable[..., None]:
        def hook(*given: Any) -> None:
            order.append(number)
            if number == 1:  # the last step: no pass is left to come
                kept.append(saved(*results[:1]).bytes)

        return hook

    for number, part in enumerate(parts):
        part.register_forward_hook(count(number))
    for number, optimizer in enumerate(optimizers):
        optimizer.register_step_pre_hook(step(number))
    lists = [heads, optimizers, *(targets for _, targets in batches)]
    around = Surroundings(*parts, optimizers=optimizers, lists=lists)
    for inputs, targets in batches:
        results.clear()
        returned.append(plain(answer(trunk, heads, optimizers, inputs, targets)))
    return {
        "returned": returned,
        "forwards": forwards,
        "order": order,
        "kept": max(kept, default=0),
        "passes": len(passes),
        "parameters": [[plain(parameter) for parameter in part.parameters()] for part in parts],
        "left": around.changed(),
    }
