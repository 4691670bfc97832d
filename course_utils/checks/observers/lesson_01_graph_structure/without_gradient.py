"""Running an answer to `without_gradient`."""

from __future__ import annotations

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.observers.traces import hooks_on, parts_of
from course_utils.checks.scenes.lesson_01_graph_structure.without_gradient import earlier_loss, model_and_loss


def observe(answer: Answer, case: Case) -> Observation:
    model, loss = model_and_loss(case)
    held = {name: plain(parameter.grad) for name, parameter in model.named_parameters()}
    flags = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
    modes, state = [module.training for module in model.modules()], model.state_dict(keep_vars=True)
    numbers, hooks = {name: plain(it) for name, it in state.items()}, hooks_on(*parts_of(model))
    with every_pass() as passes:
        if "earlier" in case.given:
            answer(model, earlier_loss(model))
            for name, parameter in model.named_parameters():
                parameter.requires_grad_(flags[name])
        result = plain(answer(model, loss))
    evaluating = [module.training for module in model.modules()]
    now = dict(model.named_parameters())
    return {
        "returned": result,
        "passes": len(passes),
        "graded": [name for name in held if name in now and plain(now[name].grad) != held[name]],
        "mode": evaluating != modes,
        "hooks": hooks_on(*parts_of(model)) != hooks,
        "moved": [name for name, it in state.items() if plain(it) != numbers[name]],
        "flags": [name for name in flags if name in now and now[name].requires_grad != flags[name]],
    }
