"""Running an answer to `parameter_gradients`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.accumulated import Accumulated
from course_utils.checks.observers.lesson_02_how_backward_works.mappings import entries, is_dict
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.observers.traces import hooks_on, parts_of
from course_utils.checks.scenes.lesson_02_how_backward_works.parameter_gradients import kept, on_the_way, two_branches
from course_utils.checks.scenes.numbers import numbers


def observe(answer: Answer, case: Case) -> Observation:
    model, loss = two_branches(case)
    parameters = dict(model.named_parameters())
    for name in case.given["held"]:
        parameters[name].grad = numbers(len(name), *parameters[name].shape)
    before = {name: plain(parameter.grad) for name, parameter in parameters.items()}
    values = {name: plain(parameter) for name, parameter in parameters.items()}
    requiring = {name: parameter.requires_grad for name, parameter in parameters.items()}
    modes, hooks = [module.training for module in model.modules()], hooks_on(*parts_of(model))
    accumulated = Accumulated(parameters.values())
    way = on_the_way(model, loss)
    with every_pass() as passes:
        returned = answer(loss, model)
    recorded = [name for name, value in entries(returned) if type(value) is torch.Tensor and value.requires_grad]
    return {
        "returned": plain(dict(entries(returned)) if is_dict(returned) else returned),
        "recorded": recorded,
        "passes": len(passes),
        "kept": kept(loss, way),
        "before": before,
        "after": {name: plain(parameter.grad) for name, parameter in parameters.items()},
        "accumulated": accumulated.there_again(passes),
        "moved": [name for name, parameter in parameters.items() if plain(parameter) != values[name]],
        "unfrozen": [name for name, was in requiring.items() if parameters[name].requires_grad and not was],
        "frozen": [name for name, was in requiring.items() if was and not parameters[name].requires_grad],
        "mode": [module.training for module in model.modules()] != modes,
        "hooks": hooks_on(*parts_of(model)) - hooks,
    }
