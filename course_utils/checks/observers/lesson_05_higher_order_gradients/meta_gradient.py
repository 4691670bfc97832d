"""Running an answer to `meta_gradient`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.lesson_05_higher_order_gradients.results import recorded, state
from course_utils.checks.observers.lesson_05_higher_order_gradients.surroundings import changed, facts_about
from course_utils.checks.observers.lesson_05_higher_order_gradients.watched import batched
from course_utils.checks.observers.runs import notice
from course_utils.checks.scenes.lesson_05_higher_order_gradients.maps import doubles
from course_utils.checks.scenes.lesson_05_higher_order_gradients.meta_gradient import adaptable


def observe(answer: Answer, case: Case) -> Observation:
    model = adaptable(case)
    parameters = dict(model.named_parameters())
    model.get_parameter("last.bias").grad = doubles(3, 2)
    before = {name: state(parameter) for name, parameter in parameters.items()}
    support, query = (
        (case.given[f"{part} inputs"].tensor(), case.given[f"{part} targets"].tensor()) for part in ("support", "query")
    )
    runs: list[bool] = []  # whether each was for several sets of parameters at once

    def ran(module: nn.Module, given: Any, result: Any) -> None:
        runs.append(any(batched(parameter) for parameter in module.parameters()))

    notice(model, ran, name="runs")
    traced = facts_about(model)
    returned = answer(model, support, query, case.given["lr"], case.given["steps"])
    left = changed(traced, model)
    entries = dict(returned) if isinstance(returned, Mapping) else {}
    now = dict(model.named_parameters())
    return {
        "returned": plain(returned),
        "recorded": any(recorded(value) for value in entries.values()),
        "moved": [
            name
            for name, parameter in parameters.items()
            if now.get(name) is not parameter or plain(parameter) != before[name][0]
        ],
        "graded": [name for name, parameter in parameters.items() if plain(parameter.grad) != before[name][1]],
        "switched": [name for name, parameter in parameters.items() if parameter.requires_grad != before[name][2]],
        "left": left,
        "parameters": {name: plain(parameter) for name, parameter in parameters.items()},
        "runs": len(runs),
        "batched": any(runs),
    }
