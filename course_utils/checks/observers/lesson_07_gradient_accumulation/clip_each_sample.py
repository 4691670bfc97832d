"""Running an answer to `clip_each_sample`."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from course_utils.checks.data import Answer, Case, Observation
from course_utils.checks.observers.lesson_07_gradient_accumulation.watch import Watch
from course_utils.checks.scenes.lesson_07_gradient_accumulation.clip_each_sample import Images, image_batch


def observe(answer: Answer, case: Case) -> Observation:
    model, images, targets = image_batch(case)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 0.25)
    watch = Watch(model, model.features, model.features)
    watch.batches([(images, targets)])
    Images.runs = 0
    attached: list[bool] = []

    def run() -> object:
        returned = answer(model, images, targets, case.given["max_norm"])
        parts = returned.values() if isinstance(returned, Mapping) else ()
        attached.extend(isinstance(part, torch.Tensor) and part.requires_grad for part in parts)
        return returned

    seen = watch.seen(run)
    return {**seen, "runs": max(len(seen["forwards"]), Images.runs), "attached": any(attached)}
