"""Running an answer to `saliency`."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.checks.observers.lesson_08_intermediate_gradients.held import hold_gradients, still_held
from course_utils.checks.observers.lesson_08_intermediate_gradients.state import changed, state
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.observers.runs import notice
from course_utils.checks.scenes.lesson_08_intermediate_gradients.saliency import scorer_of_images


def observe(answer: Answer, case: Case) -> Observation:
    model, images, labels = scorer_of_images(case)
    if not case.given["frozen"]:
        hold_gradients(model)
    results: list[Any] = []

    def ran(module: nn.Module, given: Any, result: Any) -> None:
        results.append(None if torch._C._functorch.is_gradtrackingtensor(result) else result)

    notice(model, ran, name="runs")  # a copy of the model, too
    for module in model.modules():
        module.register_forward_hook(lambda module, given, result: None)  # the model's own
    before, values, wanted = state(model), Array.of(images), Array.of(labels)
    with torch.set_grad_enabled(not case.given["no_grad"]), every_pass() as passes:
        returned = answer(model, images, labels)
        mode = torch.is_grad_enabled()
    return {
        "returned": plain(returned),
        "recorded": type(returned) is torch.Tensor and returned.requires_grad,
        "runs": len(results),
        "passes": len(passes),
        "kept": any(still_held(result) for result in results if isinstance(result, torch.Tensor)),
        "changed": changed(before, model),
        "images": Array.of(images) == values and not images.requires_grad and images.grad is None,
        "labels": Array.of(labels) == wanted,
        "mode": mode != case.given["no_grad"],
    }
