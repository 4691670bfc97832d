"""Running an answer to `loss_hessian`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Case, Observation
from course_utils.checks.observers.lesson_05_higher_order_gradients.results import result_of, state, touched
from course_utils.checks.observers.lesson_05_higher_order_gradients.surroundings import changed, facts_about
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.scenes.lesson_05_higher_order_gradients.loss_hessian import LOSSES, parameters_of


def observe(answer: Answer, case: Case) -> Observation:
    parameters = parameters_of(case)
    for number, parameter in enumerate(parameters):
        if number % 2:  # some hold a gradient from before, some hold none
            parameter.grad = torch.full_like(parameter, 7.0)
    before = [state(parameter) for parameter in parameters]
    loss = LOSSES[case.given["loss"]][1](parameters)
    named = {"loss": loss} | {f"parameter {number}": parameter for number, parameter in enumerate(parameters)}
    traced, given = facts_about(None, **named), list(parameters)
    with every_pass() as passes:
        returned = answer(loss, given)
    changes = touched(before, parameters)
    left = changed(traced, None, **named)
    return {
        **result_of(returned),
        "passes": len(passes),
        "touched": changes,
        "left": left,
        "list": list(map(id, given)) == list(map(id, parameters)),
    }
