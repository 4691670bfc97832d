"""Running an answer to `layer_gradients`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.checks.observers.accumulated import Accumulated
from course_utils.checks.observers.lesson_08_intermediate_gradients.held import hold_gradients, still_held
from course_utils.checks.observers.lesson_08_intermediate_gradients.state import changed, state
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.observers.runs import notice
from course_utils.checks.observers.traces import hooks_on, parts_of
from course_utils.checks.scenes.lesson_08_intermediate_gradients.layer_gradients import layered, weighed
from course_utils.checks.scenes.lesson_08_intermediate_gradients.planned import Planned
from course_utils.checks.scenes.zoo import Stopped


def observe(answer: Answer, case: Case) -> Observation:
    model, x = layered(case)
    hold_gradients(model)
    runs: list[bool] = []
    full: list[bool] = []  # whether a module had a full backward hook when the model had run

    def ran(module: torch.nn.Module, given: object, result: object) -> None:
        runs.append(module is model)
        full.append(any(part._backward_hooks for part in module.modules()))

    notice(model, ran, name="forward runs")
    for module in model.modules():
        module.register_forward_hook(lambda module, given, result: None)  # the model's own
    losses: list[torch.Tensor | None] = []

    def loss_fn(output: torch.Tensor) -> torch.Tensor:
        losses.append(None)
        if case.given["fails"]:
            raise Stopped("the loss function fails here")
        losses[-1] = loss = weighed(output)
        return loss

    accumulated = Accumulated(model.parameters())
    before, values, hooks = state(model), Array.of(x), hooks_on(*parts_of(model))
    raised, returned = "", None
    with torch.enable_grad(), every_pass() as passes:
        try:
            returned = answer(model, list(case.given["names"]), x, loss_fn)
        except (Planned, Stopped) as error:
            raised = str(error)
        switched = not torch.is_grad_enabled()
    return {
        "returned": plain(returned),
        "raised": raised,
        "forward runs": sum(runs),
        "full hooks": any(full),
        "loss runs": len(losses),
        "kept": any(still_held(loss) for loss in losses),
        "passes": len(passes),
        "changed": changed(before, model),
        "accumulated": accumulated.there_again(passes),
        "more hooks": hooks_on(*parts_of(model)) - hooks,
        "x": Array.of(x) == values and not x.requires_grad and x.grad is None,
        "switched": switched,
    }
