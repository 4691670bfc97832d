"""Running an answer to `two_updates`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Answer, Case, Observation, Value, plain
from course_utils.checks.observers.loops import Below, plain_tensor
from course_utils.checks.observers.passes import count_passes, every_pass
from course_utils.checks.observers.runs import Told, notice
from course_utils.checks.observers.surroundings import Surroundings
from course_utils.checks.scenes.lesson_04_retain_graph.two_updates import two_headed


def observe(answer: Answer, case: Case) -> Observation:
    trunk, heads, optimizers, batches = two_headed(case)
    parts = [trunk, *heads]
    forwards = [0, 0, 0]
    latest: list[Below] = []
    order: list[int] = []
    kept: list[int] = []
    recorded: list[bool] = []
    leaves = [parameter for part in parts for parameter in part.parameters()]
    returned: list[Value] = []
    passes: set[int] = set()
    all_passes = 0

    def count(number: int) -> Told:
        def ran(module: nn.Module, given: tuple[Any, ...], result: torch.Tensor) -> None:
            forwards[number] += 1
            if number == 0:
                latest[:] = [Below(plain_tensor(result))]

        return ran

    def step(number: int) -> Callable[..., None]:
        def hook(*given: Any) -> None:
            order.append(number)
            recorded.append(any(leaf.grad is not None and leaf.grad.requires_grad for leaf in leaves))
            if number == 1:  # the last step: no pass is left to come
                kept.append(sum(below.saved().bytes for below in latest))

        return hook

    for number, part in enumerate(parts):
        notice(part[-1], count(number), name="forwards")
    # A pass that stops at the trunk's result may run the node that made it, and none behind it: so ask deeper. One that
    # goes further may stop at any layer.
    for layer in list(trunk)[:-1]:
        notice(layer, lambda module, given, result: count_passes(plain_tensor(result), passes))
    for number, optimizer in enumerate(optimizers):
        optimizer.register_step_post_hook(step(number))
    around = Surroundings(*parts, optimizers=optimizers)
    altered: dict[str, None] = {}
    for inputs, targets in batches:
        latest.clear()
        lists = {"the list of heads": heads, "the list of optimizers": optimizers, "the list of targets": targets}
        given = {name: list(items) for name, items in lists.items()}  # new ones: a later update meets whole lists
        with every_pass() as started:
            made = answer(
                trunk, given["the list of heads"], given["the list of optimizers"], inputs, given["the list of targets"]
            )
        all_passes += len(started)
        returned.append(plain(made))
        altered |= dict.fromkeys(name for name in lists if [*map(id, given[name])] != [*map(id, lists[name])])
    return {
        "returned": returned,
        "forwards": forwards,
        "order": order,
        "kept": max(kept, default=0),
        "recorded": any(recorded),
        "through the trunk": len(passes),
        "passes": all_passes,
        "parameters": [[plain(parameter) for parameter in part.parameters()] for part in parts],
        "left": [*altered, *around.changed()],
    }
