"""Running an answer to `loss_gradients`."""

from __future__ import annotations

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.accumulated import Accumulated
from course_utils.checks.observers.keeping import kept_bytes
from course_utils.checks.observers.lesson_04_retain_graph.returned import tensors_in
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.observers.surroundings import Surroundings
from course_utils.checks.scenes.lesson_04_retain_graph.loss_gradients import held_before, trunk_and_losses


def observe(answer: Answer, case: Case) -> Observation:
    trunk, h, losses, others = trunk_and_losses(case)
    parameters = list(trunk.parameters())
    for number, parameter in enumerate([*parameters, *others]):
        parameter.grad = held_before(number, parameter)
    held = [plain(parameter.grad) for parameter in (*parameters, *others)]
    values = [plain(parameter) for parameter in (*parameters, *others)]
    accumulated = Accumulated((*parameters, *others))
    given = list(losses), list(parameters)
    around = Surroundings(*losses, *parameters, *others, lists=given)
    with every_pass() as passes:
        returned = answer(*given)
    return {
        "returned": plain(returned),
        "recorded": any(value.requires_grad for value in tensors_in(returned)),
        "passes": len(passes),
        "kept": kept_bytes(h),
        "held": [plain(parameter.grad) for parameter in (*parameters, *others)] == held,
        "accumulated": accumulated.there_again(passes),
        "moved": [plain(parameter) for parameter in (*parameters, *others)] != values,
        "left": around.changed(),
    }
