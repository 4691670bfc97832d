"""Running an answer to `gradient_log`."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.accumulated import Accumulated
from course_utils.checks.observers.lesson_08_intermediate_gradients.held import hold_gradients, still_held
from course_utils.checks.observers.lesson_08_intermediate_gradients.state import changed, state
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.observers.runs import notice
from course_utils.checks.observers.traces import hooks_on, parts_of
from course_utils.checks.scenes.batches import Batches
from course_utils.checks.scenes.lesson_08_intermediate_gradients.gradient_log import logged
from course_utils.checks.scenes.lesson_08_intermediate_gradients.planned import Planned
from course_utils.checks.scenes.zoo import Stopped
from course_utils.graph.alive import Graphs


def observe(answer: Answer, case: Case) -> Observation:
    model, batches = logged(case)
    hold_gradients(model)
    graphs = Graphs()
    seen: dict[str, list[Any]] = {"hooks": [], "alive": [], "kept": [], "runs": []}
    last: list[torch.Tensor] = []

    def ran(module: nn.Module, given: Any, result: Any) -> None:
        seen["kept"] += [still_held(last.pop())] if last else []
        seen["alive"].append(graphs.alive())
        seen["runs"].append(module is model)
        if isinstance(result, torch.Tensor):
            graphs.add(result)

    def loss_fn(output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        seen["hooks"].append(hooks_on(*model.modules()))
        if len(seen["hooks"]) == case.given["fails at"]:
            kind: type[BaseException] = Stopped if case.given["stops"] else Planned
            raise kind("the loss function fails here")
        loss = nn.functional.mse_loss(output, targets)
        last[:] = [loss]
        return loss

    notice(model, ran, name="runs")
    for module in model.modules():
        module.register_forward_hook(lambda module, given, result: None)  # the model's own
    own = model if isinstance(model, nn.Linear) else model.get_submodule("enter")
    own.register_full_backward_hook(lambda *given: None)
    otherwise = None
    if case.given["fails at"]:  # what it returns where nothing fails
        twin, its_batches = logged(case)
        hold_gradients(twin)
        with torch.enable_grad():
            otherwise = plain(answer(twin, Batches(its_batches), nn.functional.mse_loss))
    before, accumulated, hooks = state(model), Accumulated(model.parameters()), hooks_on(*parts_of(model))
    raised, returned = "", None
    with torch.enable_grad(), every_pass() as passes:
        try:
            returned = answer(model, Batches(batches), loss_fn)
        except (Planned, Stopped) as error:
            raised = str(error)
        switched = not torch.is_grad_enabled()
    observed: Observation = {"returned": plain(returned), "otherwise": otherwise, "raised": raised}
    observed |= {"switched": switched, "changed": changed(before, model)}
    observed["accumulated"] = accumulated.there_again(passes)
    observed["more hooks"] = hooks_on(*parts_of(model)) - hooks
    kept = any(seen["kept"]) or any(still_held(loss) for loss in last)
    return {**observed, **seen, "kept": kept, "runs": sum(seen["runs"]), "passes": len(passes)}
